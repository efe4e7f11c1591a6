//! Waiting for a condition instead of sleeping.

use std::time::{Duration, Instant};

use crate::FaultError;

/// Calls `step` until it yields a value, for `limit` at most.
pub(crate) fn within<T>(
    limit: Duration,
    what: &'static str,
    mut step: impl FnMut() -> Result<Option<T>, FaultError>,
) -> Result<T, FaultError> {
    let start = Instant::now();
    loop {
        if let Some(value) = step()? {
            return Ok(value);
        }
        if start.elapsed() > limit {
            return Err(FaultError::Late { what, limit });
        }
        pause();
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a pause between two looks at a condition of another process, not a synchronisation"
)]
fn pause() {
    std::thread::sleep(Duration::from_millis(5));
}
