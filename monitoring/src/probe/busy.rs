//! Asynchronous calls of which it is told how long they were polled.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::thread;

use baler_common::record::timing::AsyncOperationExecutionRecord;
use baler_common::record::{Record, RowWriter, Schema};

use super::record::read_clock;
use super::site::{Site, SiteNumber};
use crate::clock::{is_in_ticks, ticks};
use crate::controller;
use crate::queue::{self, Stamp, TIN_UNIX_NS, TOUT_UNIX_NS};
use crate::trace::{self, Position, TraceContext};

/// So many words an execution has on its way to the collector: header, trace, tin, tout, eoi and ess,
/// busy time, polls and how it ended.
pub(crate) const BUSY_WORDS: usize = 7;

/// In the last word, above the number of polls: the future was dropped before it was done.
pub(crate) const CANCELLED: u64 = 1 << 32;

/// In the last word: a panic ended it.
pub(crate) const PANICKED: u64 = 1 << 33;

/// An asynchronous call that is recorded with the time inside its polls.
#[derive(Debug)]
pub struct BusyCall {
    running: Option<Running>,
}

#[derive(Debug)]
struct Running {
    site: SiteNumber,
    position: Position,
    context: TraceContext,
    /// Whether times are in ticks; else in nanoseconds.
    in_ticks: bool,
    tin: u64,
    busy: u64,
    polls: u32,
    is_done: bool,
    was_panicking: bool,
}

impl Site {
    /// Begins an asynchronous call that is recorded with the time inside its polls.
    #[inline]
    pub fn enter_async_busy(&'static self) -> BusyCall {
        BusyCall {
            running: self.active().and_then(begin),
        }
    }
}

fn begin(site: SiteNumber) -> Option<Running> {
    let key = controller::active_key();
    if key == 0 {
        return None;
    }
    let (position, context) = trace::enter_async();
    Some(Running {
        site,
        position,
        context,
        in_ticks: is_in_ticks(key),
        tin: read_clock(key),
        busy: 0,
        polls: 0,
        is_done: false,
        was_panicking: thread::panicking(),
    })
}

impl BusyCall {
    /// A call that is not recorded.
    #[inline]
    pub const fn inactive() -> Self {
        Self { running: None }
    }

    /// Polls the body in the call's context.
    #[inline]
    pub fn poll<F: Future>(
        &mut self,
        body: Pin<&mut F>,
        task: &mut Context<'_>,
    ) -> Poll<F::Output> {
        let Some(running) = &mut self.running else {
            return body.poll(task);
        };
        running.polls = running.polls.saturating_add(1);
        let mut busy = Busy::begin(running.in_ticks, &mut running.busy);
        let polled = running.context.poll(body, task);
        busy.end();
        running.is_done = polled.is_ready();
        polled
    }
}

/// A poll that is being measured; one that panics counts as well.
struct Busy<'a> {
    in_ticks: bool,
    began: Option<u64>,
    sum: &'a mut u64,
}

impl<'a> Busy<'a> {
    fn begin(in_ticks: bool, sum: &'a mut u64) -> Self {
        Self {
            in_ticks,
            began: now(in_ticks),
            sum,
        }
    }

    fn end(&mut self) {
        if let (Some(began), Some(now)) = (self.began.take(), now(self.in_ticks)) {
            *self.sum = self.sum.saturating_add(now.saturating_sub(began));
        }
    }
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.end();
    }
}

/// The time by the clock by which the call began; `None` if that is not to be had any more.
fn now(in_ticks: bool) -> Option<u64> {
    if in_ticks {
        return Some(ticks::read());
    }
    let key = controller::active_key();
    (key != 0 && !is_in_ticks(key)).then(|| read_clock(key))
}

impl Drop for BusyCall {
    fn drop(&mut self) {
        if let Some(running) = &self.running {
            running.end();
        }
    }
}

impl Running {
    #[inline(never)]
    fn end(&self) {
        let key = controller::active_key();
        if key == 0 {
            return;
        }
        let tout = read_clock(key);
        let clock = |in_ticks: bool, flag| if in_ticks { 0 } else { flag };
        let clocks = clock(self.in_ticks, TIN_UNIX_NS) | clock(is_in_ticks(key), TOUT_UNIX_NS);
        let ended = if self.is_done {
            0
        } else if !self.was_panicking && thread::panicking() {
            PANICKED
        } else {
            CANCELLED
        };
        let words: [u64; BUSY_WORDS] = [
            (u64::from(self.site.get()) << 8) | clocks,
            self.position.trace_id.cast_unsigned(),
            self.tin,
            tout,
            self.position.at,
            self.busy,
            u64::from(self.polls) | ended,
        ];
        let find = || controller::active_shared(key).map(|shared| Arc::clone(&shared.queues));
        // The collector looks at what has this kind of time.
        let stamp = Stamp::Ticks(tout);
        queue::push(key, find, busy_words(), stamp, |row: &mut RowWriter<'_>| {
            words.into_iter().for_each(|word| row.u64(word));
        });
    }
}

/// Stands for the type of an execution that is still in words; the collector makes the record.
pub(crate) fn busy_words() -> &'static Arc<Schema> {
    static MARKER: OnceLock<Arc<Schema>> = OnceLock::new();
    MARKER.get_or_init(|| Arc::new(Schema::clone(AsyncOperationExecutionRecord::schema())))
}
