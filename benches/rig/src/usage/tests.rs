use super::*;
use crate::clock::{process_cpu_time, thread_cpu_time};

#[test]
fn a_process_that_holds_and_works_more_shows_more() {
    let pid = std::process::id();
    let before = Footprint::of(pid).unwrap();
    let files: Vec<_> = (0..50)
        .map(|_| fs::File::open("/proc/self/stat").unwrap())
        .collect();
    let memory = vec![1_u8; 64 << 20];
    let after = Footprint::of(pid).unwrap();
    assert!(after.descriptors >= before.descriptors + 50, "{after:?}");
    assert!(
        after.resident_bytes >= before.resident_bytes + (60 << 20),
        "{before:?} {after:?}"
    );
    drop((files, memory));
    let step = Duration::from_millis(60);
    while process_cpu_time() < step {
        std::hint::spin_loop();
    }
    let exact = process_cpu_time();
    let busy = busy_time_of(pid).unwrap();
    assert!(busy + step >= exact && busy <= exact + step, "{busy:?}");
    Footprint::of(u32::MAX).unwrap_err();
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
