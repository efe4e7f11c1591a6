//! The state of the medium, from the collector's events.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use baler_common::container::LossReason;
use baler_monitoring::Event;

use crate::patience::TELLING_INTERVAL;

/// How often it is logged that records cannot be sent.
const MAX_TOLD: u64 = 10;

/// The state of a medium beside its figures.
#[derive(Debug, Default)]
pub(super) struct MediumWatch {
    endpoint: String,
    /// The reason why the medium was given up. It is read once a record, so it is outside of the
    /// mutex.
    given_up: OnceLock<String>,
    state: Mutex<WatchState>,
}

#[derive(Debug, Default)]
struct WatchState {
    /// Chunks that were lost and not logged yet, by reason.
    lost: BTreeMap<LossReason, Lost>,
    lost_told: Option<Instant>,
    /// How often records could not be sent. Only the first times are logged.
    put_aside: u64,
}

/// Chunks that were lost for the same reason.
#[derive(Debug, Default)]
struct Lost {
    chunks: u64,
    records: u64,
    /// The error of the medium for the last one.
    error: Option<String>,
}

impl MediumWatch {
    /// Creates the watch over the medium at this endpoint.
    pub(super) fn new(endpoint: &str) -> Self {
        Self {
            endpoint: endpoint.to_owned(),
            ..Self::default()
        }
    }

    /// Records an event of the collector, and logs it.
    pub(super) fn told(&self, event: &Event) {
        match event {
            Event::Connected { medium } => tracing::info!(medium, "connected"),
            Event::Disconnected { error, retries } => {
                tracing::info!(%error, retries, "disconnected");
                if !retries {
                    self.give_up(format!("gave up on {}: {error}", self.endpoint));
                }
            }
            Event::Lost {
                records,
                reason,
                error,
                ..
            } => {
                let mut state = self.lock();
                let lost = state.lost.entry(*reason).or_default();
                lost.chunks = lost.chunks.saturating_add(1);
                lost.records = lost.records.saturating_add(u64::from(*records));
                lost.error = error.as_ref().map(ToString::to_string);
            }
            Event::Panicked { place, records } => {
                tracing::error!(place, records, "a panic was caught");
            }
            Event::Quarantined(put_aside) => {
                let mut state = self.lock();
                state.put_aside = state.put_aside.saturating_add(1);
                if state.put_aside > MAX_TOLD {
                    return;
                }
                drop(state);
                let (record, reason) = (&put_aside.record, put_aside.reason);
                let (records, problem) = (put_aside.records, &put_aside.problem);
                let (size, limit) = (put_aside.size_bytes, put_aside.limit_bytes);
                tracing::warn!(
                    %record, records, %reason, %problem, size, limit, "records cannot be sent"
                );
            }
            _ => {}
        }
    }

    /// Logs the chunks that were lost since the last time, one line for each reason, if it is time
    /// or the end.
    pub(super) fn report_lost(&self, is_end: bool) {
        let mut state = self.lock();
        let told = state.lost_told;
        let is_due = is_end || told.is_none_or(|at| at.elapsed() >= TELLING_INTERVAL);
        if state.lost.is_empty() || !is_due {
            return;
        }
        state.lost_told = Some(Instant::now());
        let lost = std::mem::take(&mut state.lost);
        drop(state);
        for (reason, lost) in lost {
            let Lost {
                chunks,
                records,
                error,
            } = lost;
            tracing::warn!(chunks, records, %reason, error, "chunks were given up");
        }
    }

    /// Whether the medium was given up.
    pub(super) fn is_given_up(&self) -> bool {
        self.given_up.get().is_some()
    }

    /// Gives the medium up. The first reason counts.
    pub(super) fn give_up(&self, reason: String) {
        self.given_up.set(reason).ok();
    }

    /// Returns why the medium was given up, if it was.
    pub(super) fn why_given_up(&self) -> Option<String> {
        self.given_up.get().cloned()
    }

    fn lock(&self) -> MutexGuard<'_, WatchState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
