//! Calls in progress.

use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::thread::LocalKey;

#[cfg(feature = "sampling")]
use super::published::Published;
use super::record::{self, Begun, OperationCall};
#[cfg(feature = "sampling")]
use super::site::SAMPLED;
use super::site::{OFF, Site, Turns};
use crate::clock::ticks;
use crate::controller;
use crate::queue::{self, CALL_WORDS, KIND_CALL, KIND_DURATION};
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

impl Site {
    /// Begins a call; it ends when the guard is dropped.
    ///
    /// While nothing is recorded here this is one relaxed load, except for the first call.
    #[inline(always)]
    pub fn enter(&'static self) -> Guard {
        Guard {
            site: self,
            begun: record::begin(self),
            not_send: PhantomData,
        }
    }

    /// Begins a call of an asynchronous function; it ends when the value is dropped.
    #[inline]
    pub fn enter_async(&'static self) -> AsyncCall<OperationCall> {
        AsyncCall::begin(self, record::begin_async)
    }

    /// Begins a call that makes a duration record; it ends when the guard is dropped.
    #[inline(always)]
    pub fn enter_duration(&'static self) -> DurationGuard {
        DurationGuard {
            site: self,
            tin: record::begin_timed(self),
        }
    }

    /// Whether this call is recorded when one call in `of` is. Counts the call if the site is
    /// active.
    #[inline]
    pub fn is_turn(&'static self, turns: &'static LocalKey<Turns>, of: u32) -> bool {
        self.active().is_some() && turns.with(|turns| turns.next(of))
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

/// Makes a call that is published and counted, to measure its cost.
#[cfg(feature = "sampling")]
pub(crate) fn call_for_calibration() {
    // It is never registered.
    static SITE: Site = Site::named("baler.calibration()");
    SITE.set_state(SAMPLED);
    drop(SITE.enter());
}

/// Runs a body as a call, with the guard that `enter` makes. While nothing is recorded at the site,
/// it makes no guard.
#[inline(always)]
pub fn run<G, T>(site: &'static Site, enter: impl FnOnce() -> G, body: impl FnOnce() -> T) -> T {
    if site.state() == OFF {
        return body();
    }
    let _guard = enter();
    body()
}

/// Written by `#[probe]` into an asynchronous body where it must name the body's output; never
/// called.
#[cold]
pub fn never_called<T>() -> T {
    std::process::abort()
}

/// A call, synchronous or not, that makes a duration record when the guard is dropped.
///
/// It has no place in a trace, so it is not tied to its thread: an asynchronous call may end on
/// another one.
#[derive(Debug)]
#[must_use = "the call ends at once unless the guard is kept in a variable"]
pub struct DurationGuard {
    site: &'static Site,
    /// The start of the call in the form of a row; 0 if the call is not recorded.
    tin: u64,
}

impl Drop for DurationGuard {
    #[inline(always)]
    fn drop(&mut self) {
        if self.tin != 0 {
            end_duration(self.site, self.tin);
        }
    }
}

/// Ends a call that is recorded.
#[inline]
fn end_duration(site: &'static Site, tin: u64) {
    let tout = ticks::read();
    if !queue::append_call(site.state_at_end(), || duration_row(site, tin, tout)) {
        end_duration_slowly(site, tin);
    }
}

/// Returns the row of a call without a trace.
#[inline(always)]
fn duration_row(site: &Site, tin: u64, tout: u64) -> [u64; CALL_WORDS] {
    let header = site.header() ^ (KIND_CALL ^ KIND_DURATION);
    [header, 0, tin, tout, 0]
}

#[cold]
#[inline(never)]
fn end_duration_slowly(site: &'static Site, tin: u64) {
    let key = controller::active_key();
    if record::end_published(site, tin) && key != 0 {
        record::push(key, duration_row(site, tin, record::read_marked(key)));
    }
}

/// An asynchronous call. It ends, and is recorded, when it is dropped: when its body is done, when
/// it panicked, or when the future is dropped before that.
#[derive(Debug)]
pub struct AsyncCall<R: AsyncRecord> {
    /// The record in progress, and the context in which the body is polled.
    running: Option<(R, TraceContext)>,
    /// Each poll of the body is published if the site is sampled then.
    #[cfg(feature = "sampling")]
    site: Option<&'static Site>,
}

/// The record of an asynchronous call.
pub trait AsyncRecord {
    /// Observes a poll of the body.
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
        Self {
            running: None,
            #[cfg(feature = "sampling")]
            site: None,
        }
    }

    /// Begins a call, if calls are recorded at this site.
    pub(super) fn begin(
        site: &'static Site,
        begin: impl FnOnce(&'static Site) -> Option<(R, TraceContext)>,
    ) -> Self {
        Self {
            running: site.active().and_then(|_| begin(site)),
            #[cfg(feature = "sampling")]
            site: Some(site),
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
        #[cfg(feature = "sampling")]
        let _published = self.site.map(Published::begin);
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
