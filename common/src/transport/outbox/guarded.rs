//! Calling a writer that may panic.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::transport::{RetryClass, TransportError};

/// Calls the writer; its panic becomes an error after which it is reopened.
pub(super) fn guarded<T>(
    operation: &'static str,
    medium: &'static str,
    call: impl FnOnce() -> T,
) -> Result<T, TransportError> {
    // What a panicking writer leaves behind is its own; `reopen` makes it forget.
    catch_unwind(AssertUnwindSafe(call)).map_err(|panic| {
        let text = panic
            .downcast_ref::<&str>()
            .copied()
            .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
            .unwrap_or("no message");
        let message = format!("the writer panicked: {text}");
        TransportError::new(operation, medium, RetryClass::Retry, message)
    })
}
