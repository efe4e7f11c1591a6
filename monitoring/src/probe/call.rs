//! Calls that are being measured.

use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::record::{self, Begun, OperationCall};
use super::site::{OFF, Site};
use crate::trace::TraceContext;

/// A synchronous call; it ends, and is recorded, when the guard is dropped.
///
/// Guards of a thread must be dropped in the reverse order in which they were made, and never by
/// another thread:
///
/// ```compile_fail,E0277
/// let probe = baler_monitoring::enter!("warehouse.pack()");
/// std::thread::spawn(move || drop(probe));
/// ```
#[derive(Debug)]
#[must_use = "the call ends at once unless the guard is kept in a variable, as `let _probe = …`"]
pub struct Guard {
    site: &'static Site,
    begun: Begun,
    not_send: PhantomData<*const ()>,
}

impl Guard {
    /// Begins a call, if calls are recorded there.
    #[inline(always)]
    pub(super) fn new(site: &'static Site) -> Self {
        Self {
            site,
            begun: record::begin(site),
            not_send: PhantomData,
        }
    }
}

impl Drop for Guard {
    #[inline(always)]
    fn drop(&mut self) {
        if self.begun.tin != 0 {
            record::end(self.site, self.begun);
        }
    }
}

/// Runs a body as a call, with the guard that `enter` makes; without it while nothing is recorded at
/// the site.
#[inline(always)]
pub fn run<G, T>(site: &'static Site, enter: impl FnOnce() -> G, body: impl FnOnce() -> T) -> T {
    if site.state() == OFF {
        return body();
    }
    let _guard = enter();
    body()
}

/// An asynchronous call; it ends, and is recorded, when it is dropped: when its body is done, when
/// it panicked, and when the future is dropped before that.
#[derive(Debug)]
pub struct AsyncCall<R: AsyncRecord> {
    /// What is recorded, and the context in which the body is polled.
    running: Option<(R, TraceContext)>,
}

/// What is recorded of an asynchronous call.
pub trait AsyncRecord {
    /// Watches a poll of the body.
    #[inline]
    fn poll<T>(&mut self, poll: impl FnOnce() -> Poll<T>) -> Poll<T> {
        poll()
    }

    /// Records the end of the call.
    fn end(&mut self);
}

impl<R: AsyncRecord> AsyncCall<R> {
    /// A call that is not recorded.
    #[inline]
    pub const fn inactive() -> Self {
        Self { running: None }
    }

    /// Begins a call, if calls are recorded there.
    pub(super) fn begin(
        site: &'static Site,
        begin: impl FnOnce(&'static Site) -> Option<(R, TraceContext)>,
    ) -> Self {
        Self {
            running: site.active().and_then(|_| begin(site)),
        }
    }

    pub(super) fn record(&mut self) -> Option<&mut R> {
        self.running.as_mut().map(|(record, _)| record)
    }

    /// Polls the body in the call's context.
    #[inline]
    pub fn poll<F: Future>(
        &mut self,
        body: Pin<&mut F>,
        task: &mut Context<'_>,
    ) -> Poll<F::Output> {
        match &mut self.running {
            Some((record, context)) => record.poll(|| context.poll(body, task)),
            None => body.poll(task),
        }
    }
}

impl<R: AsyncRecord> Drop for AsyncCall<R> {
    #[inline]
    fn drop(&mut self) {
        if let Some((record, _)) = &mut self.running {
            record.end();
        }
    }
}

impl AsyncRecord for OperationCall {
    #[inline]
    fn end(&mut self) {
        record::end_async(self);
    }
}
