use super::*;

#[test]
fn a_request_ends_waiting_and_starts_the_one_deadline() {
    let shutdown = Shutdown::new(Duration::from_secs(60));
    let waiter = shutdown.clone();
    let far = Instant::now() + Duration::from_secs(600);
    let thread = thread::spawn(move || waiter.wait_until(far));
    shutdown.request();
    let deadline = shutdown.deadline();
    shutdown.request();
    assert!(thread.join().unwrap());
    assert_eq!(shutdown.deadline(), deadline);
    assert!(shutdown.is_requested());
}

#[test]
fn what_is_kept_of_the_time_is_a_part_of_it() {
    for (timeout, left) in [(60_000, 59_750), (1_000, 900), (0, 0)] {
        let began = Instant::now();
        let shutdown = Shutdown::new(Duration::from_millis(timeout));
        shutdown.request();
        let found = shutdown.deadline() - began;
        let left = Duration::from_millis(left);
        assert!(
            left <= found && found <= left + began.elapsed(),
            "{found:?}"
        );
    }
}

#[test]
fn waiting_ends_at_its_time() {
    let shutdown = Shutdown::new(Duration::ZERO);
    assert!(!shutdown.wait_until(Instant::now() + Duration::from_millis(1)));
}

#[test]
fn a_panic_of_a_thread_asks_the_program_to_end_and_one_of_a_task_does_not() {
    let shutdown = Shutdown::new(Duration::from_secs(3_600));
    shutdown.request_on_panic();
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let runtime = runtime.unwrap();
    let task = async { tokio::spawn(async { panic!("one connection") }).await };
    runtime.block_on(task).unwrap_err();
    assert!(shutdown.has_panicked());
    assert!(!shutdown.is_requested());
    thread::spawn(|| panic!("a worker")).join().unwrap_err();
    assert!(shutdown.wait_until(Instant::now() + Duration::from_secs(60)));
    drop(panic::take_hook());
}
