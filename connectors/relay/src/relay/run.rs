//! Relaying until something ends it.

use std::time::{Duration, Instant};

use super::{Relay, Step};
use crate::RelayError;

/// How long to wait for the source at first while the sink owes confirmations.
pub(super) const FIRST_PAUSE: Duration = Duration::from_micros(250);

/// How long to wait for the source at most while the sink owes confirmations.
pub(super) const LONGEST_PAUSE: Duration = Duration::from_millis(20);

/// How long [`Relay::run`] waits at a time before it looks whether it should stop.
const TICK: Duration = Duration::from_millis(50);

/// When [`Relay::run`] stops by itself.
#[derive(Debug, Clone, Copy, Default)]
#[non_exhaustive]
pub struct Stop {
    /// When nothing came for so long, the source was at the end of its medium all the time
    /// ([`ChunkReader::waits_for`](baler_common::transport::ChunkReader::waits_for)), and nothing is
    /// in flight.
    pub idle_timeout: Option<Duration>,
    /// When so many chunks were received, repeated ones included, and all of them are settled.
    pub chunks: Option<u64>,
}

/// Why [`Relay::run`] ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// [`Stop::chunks`] is reached.
    Count,
    /// The source is at its end.
    End,
    /// Nothing came for [`Stop::idle_timeout`].
    IdleTimeout,
    /// `keep_going` said no.
    Stopped,
}

impl Relay {
    /// Relays until the end of the source, a stop, or until `keep_going` says no, which is asked
    /// after every step, and every 50 ms at least.
    ///
    /// In the last case there may be chunks in flight; [`close`](Self::close) drains them.
    ///
    /// # Errors
    ///
    /// [`RelayError`]; what is in flight stays so until [`close`](Self::close).
    pub fn run(
        &mut self,
        stop: Stop,
        mut keep_going: impl FnMut(&Self) -> bool,
    ) -> Result<Ended, RelayError> {
        self.demand.in_all = stop.chunks.unwrap_or(u64::MAX);
        let mut last_heard = Instant::now();
        while keep_going(self) {
            let settled = self.ledger.in_flight.is_empty();
            if settled && self.received() >= self.demand.in_all {
                return Ok(Ended::Count);
            }
            let waited = self.is_source_waited_for();
            match self.step(Instant::now() + TICK)? {
                Step::End => return Ok(Ended::End),
                Step::Received => last_heard = Instant::now(),
                Step::Idle if !self.ledger.in_flight.is_empty() => last_heard = Instant::now(),
                Step::Idle if waited || self.is_source_waited_for() => last_heard = Instant::now(),
                Step::Idle => {
                    let idle = last_heard.elapsed();
                    if stop.idle_timeout.is_some_and(|limit| idle >= limit) {
                        return Ok(Ended::IdleTimeout);
                    }
                }
            }
        }
        Ok(Ended::Stopped)
    }

    /// Whether the source is not at its end.
    fn is_source_waited_for(&self) -> bool {
        self.ledger.counts.source_waiting.since().is_some()
    }

    /// Waits for confirmations until `by` at most; takes nothing from the source.
    pub(super) fn drain(&mut self, by: Instant) -> Result<(), RelayError> {
        self.drive(Some(by))?;
        if !self.ledger.in_flight.is_empty() {
            self.bell.wait(self.until(by));
        }
        Ok(())
    }
}
