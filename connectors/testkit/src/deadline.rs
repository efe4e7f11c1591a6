//! Waiting for a condition instead of sleeping.

use std::time::{Duration, Instant};

/// How long a test waits for what must happen. Ample: only a failing test waits so long.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Calls `step` until it yields a value, for [`PATIENCE`] at most.
///
/// # Panics
///
/// It did not happen in time; the message names `what`.
pub fn within_patience<T>(what: &str, step: impl FnMut() -> Option<T>) -> T {
    within(PATIENCE, what, step)
}

/// Calls `step` until it yields a value, for `time` at most.
///
/// # Panics
///
/// It did not happen in time; the message names `what`.
pub fn within<T>(time: Duration, what: &str, mut step: impl FnMut() -> Option<T>) -> T {
    let by = Instant::now() + time;
    loop {
        if let Some(value) = step() {
            return value;
        }
        assert!(Instant::now() < by, "not within {time:?}: {what}");
        pause();
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a pause between two looks at a condition, not a synchronisation"
)]
fn pause() {
    std::thread::sleep(Duration::from_millis(1));
}
