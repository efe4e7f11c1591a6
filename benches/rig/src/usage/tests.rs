use baler_monitoring::usage::{process_cpu_time, thread_cpu_time};

use super::*;

#[test]
fn a_process_that_works_more_shows_more() {
    let pid = std::process::id();
    let step = Duration::from_millis(60);
    while process_cpu_time() < step {
        std::hint::spin_loop();
    }
    let exact = process_cpu_time();
    let busy = busy_time_of(pid).unwrap();
    assert!(busy + step >= exact && busy <= exact + step, "{busy:?}");
    busy_time_of(u32::MAX).unwrap_err();
}

#[test]
fn the_time_of_a_thread_is_its_own() {
    let time = || busy_time_of_threads("rig-busy");
    let spin = move || {
        let before = time().unwrap();
        while thread_cpu_time() < Duration::from_millis(60) {
            std::hint::spin_loop();
        }
        time().unwrap() - before
    };
    let thread = std::thread::Builder::new().name("rig-busy".to_owned());
    let busy = thread.spawn(spin).unwrap().join().unwrap();
    assert!(
        busy >= Duration::from_millis(30) && busy <= Duration::from_millis(120),
        "{busy:?}"
    );
    assert_eq!(busy_time_of_threads("rig-none").unwrap(), Duration::ZERO);
}
