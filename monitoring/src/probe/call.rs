//! Calls that are being measured.

use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::record::{self, AsyncBegun, Begun};
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
pub struct Call {
    /// The context in which the body is polled.
    running: Option<(AsyncBegun, TraceContext)>,
}

impl Call {
    /// A call that is not recorded.
    #[inline]
    pub const fn inactive() -> Self {
        Self { running: None }
    }

    pub(super) fn begin(site: &'static Site) -> Self {
        Self {
            running: record::begin_async(site),
        }
    }

    /// Polls the body in the call's context.
    #[inline]
    pub fn poll<F: Future>(
        &mut self,
        body: Pin<&mut F>,
        task: &mut Context<'_>,
    ) -> Poll<F::Output> {
        match &mut self.running {
            Some((_, context)) => context.poll(body, task),
            None => body.poll(task),
        }
    }
}

impl Drop for Call {
    #[inline]
    fn drop(&mut self) {
        if let Some((begun, _)) = &self.running {
            record::end_async(begun);
        }
    }
}
