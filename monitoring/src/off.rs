//! The API of probes without the feature `enable`: it compiles to nothing.
//!
//! `#[probe]` needs none of it, because it returns its function unchanged.

use std::future::Future;
use std::marker::PhantomData;

/// Without the feature `enable`: nothing.
#[derive(Debug, Clone)]
pub struct TraceContext(());

impl TraceContext {
    /// Without the feature `enable`: [`Self::none`].
    pub const fn current() -> Self {
        Self::none()
    }

    /// No trace.
    pub const fn none() -> Self {
        Self(())
    }

    /// Without the feature `enable`: [`Self::none`].
    pub fn continuing(_parent: &crate::TraceParent) -> Self {
        Self::none()
    }

    /// Without the feature `enable`: `None`.
    pub const fn traceparent(&self) -> Option<crate::TraceParent> {
        None
    }

    /// Without the feature `enable`: `None`.
    pub const fn trace_id(&self) -> Option<i64> {
        None
    }

    /// Without the feature `enable`: nothing.
    pub const fn attach(self) -> Attached {
        Attached(PhantomData)
    }
}

/// Without the feature `enable`: nothing; it is `!Send`, as with it.
#[derive(Debug)]
#[must_use = "the context is detached at once unless the guard is kept in a variable"]
pub struct Attached(PhantomData<*const ()>);

impl Drop for Attached {
    fn drop(&mut self) {}
}

/// Without the feature `enable`: the future itself.
pub const fn in_trace<F: Future>(
    _context: TraceContext,
    future: F,
) -> impl Future<Output = F::Output> {
    future
}

/// Without the feature `enable`: nothing; it is `!Send`, as with it.
#[derive(Debug)]
#[must_use = "the call ends at once unless the guard is kept in a variable, as `let _probe = …`"]
pub struct Guard(PhantomData<*const ()>);

impl Drop for Guard {
    fn drop(&mut self) {}
}

/// Without the feature `enable`: nothing; it is `!Send`, as with it.
#[derive(Debug)]
#[must_use = "the call ends at once unless the guard is kept in a variable, as `let _probe = …`"]
pub struct EventGuard(PhantomData<*const ()>);

impl EventGuard {
    /// Without the feature `enable`: nothing; even the text is not made.
    pub fn fail(&mut self, _cause: impl std::fmt::Display) {}

    /// Without the feature `enable`: nothing.
    pub fn look_at<T, E: std::fmt::Display>(&mut self, _result: &Result<T, E>) {}
}

impl Drop for EventGuard {
    fn drop(&mut self) {}
}

/// Without the feature `enable`: nothing.
#[derive(Debug)]
pub struct Site(());

impl Site {
    /// Written by `enter!`.
    pub const fn named(_signature: &'static str) -> Self {
        Self(())
    }

    /// Called by `enter!`.
    pub const fn enter(&'static self) -> Guard {
        Guard(PhantomData)
    }

    /// Called by `enter!`.
    pub const fn enter_events(&'static self) -> EventGuard {
        EventGuard(PhantomData)
    }
}
