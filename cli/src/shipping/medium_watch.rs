//! The state of the medium, from the collector's events.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use baler_common::container::LossReason;
use baler_monitoring::Event;

use crate::patience::REPORT_INTERVAL;

/// The number of record types that have a line of their own in one report.
const MAX_TYPES: usize = 10;

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
    lost_reported: Option<Instant>,
    /// Records that cannot be sent and were not logged yet, by reason and type.
    put_aside: BTreeMap<(LossReason, Box<str>), PutAside>,
    put_aside_reported: Option<Instant>,
}

/// Chunks that were lost for the same reason.
#[derive(Debug, Default)]
struct Lost {
    chunks: u64,
    records: u64,
    /// The error of the medium for the last one.
    error: Option<String>,
}

/// Records of a type that cannot be sent for the same reason.
#[derive(Debug, Default)]
struct PutAside {
    records: u64,
    /// The problem, size and limit of the largest one.
    problem: Box<str>,
    size: usize,
    limit: usize,
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
    pub(super) fn note(&self, event: &Event) {
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
                lost.chunks += 1;
                lost.records += u64::from(*records);
                lost.error = error.as_ref().map(ToString::to_string);
            }
            Event::Panicked { place, records } => {
                tracing::error!(place, records, "a panic was caught");
            }
            Event::Quarantined(put_aside) => {
                let kinds = &mut self.lock().put_aside;
                let mut key = (put_aside.reason, put_aside.record.clone());
                if kinds.len() >= MAX_TYPES && !kinds.contains_key(&key) {
                    key.1 = "other types".into();
                }
                let kind = kinds.entry(key).or_default();
                kind.records += put_aside.records;
                if put_aside.size_bytes >= kind.size {
                    kind.problem = put_aside.problem.clone();
                    kind.size = put_aside.size_bytes;
                    kind.limit = put_aside.limit_bytes;
                }
            }
            _ => {}
        }
    }

    /// Logs the chunks that were lost since the last time, one line for each reason, and the records
    /// that cannot be sent, one line for each reason and type, if it is time or the end.
    pub(super) fn report_lost(&self, is_end: bool) {
        let is_due = |reported: Option<Instant>| {
            is_end || reported.is_none_or(|time| time.elapsed() >= REPORT_INTERVAL)
        };
        let mut state = self.lock();
        let (mut lost, mut put_aside) = (BTreeMap::new(), BTreeMap::new());
        if !state.lost.is_empty() && is_due(state.lost_reported) {
            state.lost_reported = Some(Instant::now());
            lost = std::mem::take(&mut state.lost);
        }
        if !state.put_aside.is_empty() && is_due(state.put_aside_reported) {
            state.put_aside_reported = Some(Instant::now());
            put_aside = std::mem::take(&mut state.put_aside);
        }
        drop(state);
        for ((reason, record), kind) in put_aside {
            let PutAside {
                records,
                problem,
                size,
                limit,
            } = kind;
            tracing::warn!(
                %record, records, %reason, %problem, size, limit, "records cannot be sent"
            );
        }
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
