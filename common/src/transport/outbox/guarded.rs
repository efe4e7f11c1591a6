//! Calling a writer that may panic.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::transport::{RetryClass, TransportError};

/// Calls a writer; its panic becomes an error after which it is to be reopened. For owners of a
/// writer that must outlive it.
///
/// # Errors
///
/// The call panicked; the error is retryable and has the panic's message.
pub fn guarded<T>(
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
