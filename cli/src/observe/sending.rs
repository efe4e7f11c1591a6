//! The figures of sending: a controller or a relay, the outbox below it, and a spool.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use baler_common::transport::{Connection, LaneLag, OutboxStats};
use baler_connector_file::spool::{SpoolRoute, SpoolWatch};
use baler_monitoring::{Controller, Stats};

use super::exposition::{Exposition, every_reason};
use super::metric;
use super::observable::{Check, Observable};
use super::receiving::{not_kept, reader, reader_check};
use crate::relay::RelayStats;

impl Observable for Controller {
    fn expose(&self, exposition: &mut Exposition, now: Instant) {
        let stats = self.stats();
        collector(&stats, exposition);
        outbox(&stats.outbox, exposition, now);
    }

    fn chunks_left(&self) -> u64 {
        self.stats().outbox.unconfirmed_chunks as u64
    }

    fn checks(&self, ready_age: Duration, now: Instant) -> Vec<Check> {
        writer_checks(&self.stats().outbox, ready_age, now)
    }
}

/// Adds the figures of a collector.
fn collector(stats: &Stats, exposition: &mut Exposition) {
    exposition.set(&metric::RECORDS_EMITTED, &[], stats.emitted);
    exposition.set(&metric::RECORDS_DELIVERED, &[], stats.delivered);
    exposition.set(&metric::RECORDS_SPOOLED, &[], stats.spooled);
    for (reason, records) in every_reason(&stats.dropped) {
        exposition.set(&metric::RECORDS_DROPPED, &[&reason], records);
    }
    exposition.set(&metric::RECORDS_PUT_ASIDE, &[], stats.quarantined);
    exposition.set(&metric::RECORDS_QUEUED, &[], stats.queued);
    exposition.set(&metric::QUEUE_BYTES, &[], stats.queue_bytes);
    for (trigger, chunks) in [
        ("age", stats.closed_by.age),
        ("bytes", stats.closed_by.bytes),
        ("flush", stats.closed_by.flush),
        ("records", stats.closed_by.records),
    ] {
        exposition.set(&metric::CHUNKS_CLOSED, &[trigger], chunks);
    }
    exposition.set(&metric::CHUNKS_ENCODED, &[], stats.chunks_encoded);
    exposition.set(&metric::CHUNKS_SPLIT, &[], stats.splits);
    exposition.set(&metric::CHUNK_RECORDS, &[], stats.chunk_records);
    exposition.set(&metric::CHUNK_WAIT, &[], stats.wait_time);
    exposition.set(&metric::ROW_BYTES, &[], stats.row_bytes);
    exposition.set(&metric::ENCODED_BYTES, &[], stats.encoded_bytes);
    exposition.set(&metric::COLLECTOR_PANICS, &[], stats.panics);
    exposition.set(&metric::CHUNKS_CONFIRMED, &[], stats.chunks_delivered);
    exposition.set(&metric::CONFIRMED_BYTES, &[], stats.bytes_delivered);
}

/// Adds the figures of an outbox, which every sender has.
fn outbox(stats: &OutboxStats, exposition: &mut Exposition, now: Instant) {
    exposition.set(&metric::CHUNKS_UNCONFIRMED, &[], stats.unconfirmed_chunks);
    exposition.set(&metric::UNCONFIRMED_BYTES, &[], stats.unconfirmed_bytes);
    let age = stats.oldest_unconfirmed_age(now);
    exposition.set(&metric::OLDEST_UNCONFIRMED, &[], age);
    exposition.set(&metric::CHUNKS_IN_FLIGHT, &[], stats.in_flight_chunks);
    exposition.set(&metric::IN_FLIGHT_BYTES, &[], stats.in_flight_bytes);
    exposition.set(&metric::CHUNK_RETRIES, &[], stats.retries);
    let open = stats.connection == Connection::Open;
    exposition.set(&metric::WRITER_CONNECTED, &[], open);
    for state in [Connection::Closed, Connection::Failed, Connection::Open] {
        let is = stats.connection == state;
        exposition.set(&metric::WRITER_STATE, &[state.name()], is);
    }
    exposition.set(&metric::WRITER_BLOCKED, &[], stats.writer.blocked);
    exposition.set(&metric::WRITER_THROTTLED, &[], stats.writer.throttled);
    exposition.set(&metric::WRITER_ALTERED, &[], stats.writer.altered);
    exposition.set(&metric::WRITER_LOSSES, &[], stats.writer.losses);
    let lost_chunks = stats.writer.lost_chunks;
    exposition.set(&metric::WRITER_LOST_CHUNKS, &[], lost_chunks);
    for (event, count) in &stats.writer.counts {
        exposition.set(&metric::WRITER_EVENTS, &[*event], *count);
    }
    exposition.set(&metric::WRITER_RECONNECTS, &[], stats.reopened);
    exposition.set(&metric::WRITER_FAILURES, &[], stats.broken);
    let spool = &stats.writer.spool;
    exposition.set(&metric::SPOOL_CHUNKS, &[], spool.spooled_chunks);
    exposition.set(&metric::SPOOL_RECORDS, &[], spool.spooled_records);
    exposition.set(&metric::SPOOL_REPLAYED_CHUNKS, &[], spool.replayed_chunks);
    exposition.set(&metric::SPOOL_REPLAYED_RECORDS, &[], spool.replayed_records);
    exposition.set(&metric::SPOOL_WAITING_CHUNKS, &[], spool.waiting_chunks);
    exposition.set(&metric::SPOOL_WAITING_BYTES, &[], spool.waiting_bytes);
}

/// Checks whether the medium can be reached and accepts chunks.
fn writer_checks(stats: &OutboxStats, ready_age: Duration, now: Instant) -> Vec<Check> {
    let state = if stats.writer.blocked {
        "blocked"
    } else {
        stats.connection.name()
    };
    let age = stats.oldest_unconfirmed_age(now);
    vec![
        Check::new("writer", state == Connection::Open.name()).with("state", state),
        Check::new("oldest_unconfirmed", age <= ready_age)
            .with("seconds", age.as_secs_f64())
            .with("limit_seconds", ready_age.as_secs_f64()),
    ]
}

/// The figures that the relay last reported, for other threads. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct RelayFigures(Arc<Mutex<RelayStats>>);

impl RelayFigures {
    /// Replaces the figures.
    pub(crate) fn show(&self, stats: RelayStats) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = stats;
    }

    fn stats(&self) -> RelayStats {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

impl Observable for RelayFigures {
    fn expose(&self, exposition: &mut Exposition, now: Instant) {
        let stats = self.stats();
        // A relay has one source, which appears as its only worker.
        let one = &["0"];
        exposition.set(&metric::CHUNKS_RECEIVED, one, stats.received);
        exposition.set(&metric::RECEIVED_BYTES, one, stats.received_bytes);
        exposition.set(&metric::CHUNKS_GIVEN_BACK, one, stats.given_back);
        let aside = stats.quarantined + stats.damaged;
        exposition.set(&metric::CHUNKS_QUARANTINED, one, aside);
        not_kept("0", &stats.not_kept(), exposition);
        let settled = stats.forwarded + stats.spooled;
        exposition.set(&metric::CHUNKS_ACKNOWLEDGED, one, settled);
        exposition.set(&metric::CHUNKS_IN_WORK, one, stats.in_flight);
        exposition.set(&metric::CHUNKS_REDELIVERED, one, stats.redelivered);
        exposition.set(&metric::SETTLEMENTS_STALE, one, stats.stale);
        exposition.set(&metric::READER_ERRORS, one, stats.source_errors);
        reader("0", &stats.source, exposition);
        exposition.set(&metric::CHUNKS_CONFIRMED, &[], stats.forwarded);
        exposition.set(&metric::CONFIRMED_BYTES, &[], stats.forwarded_bytes);
        outbox(&stats.outbox, exposition, now);
    }

    fn lag(&self) -> Vec<LaneLag> {
        self.stats().source.lag
    }

    fn chunks_left(&self) -> u64 {
        self.stats().in_flight
    }

    fn checks(&self, ready_age: Duration, now: Instant) -> Vec<Check> {
        let stats = self.stats();
        let mut checks = writer_checks(&stats.outbox, ready_age, now);
        checks.push(reader_check("0", &stats.source));
        checks
    }
}

impl Observable for SpoolWatch {
    fn expose(&self, exposition: &mut Exposition, _now: Instant) {
        let status = self.status();
        use SpoolRoute::{Away, Closed, Direct, Replaying};
        for route in [Away, Closed, Direct, Replaying] {
            exposition.set(&metric::SPOOL_ROUTE, &[route.name()], status.route == route);
        }
        exposition.set(&metric::SPOOL_REFUSED_CHUNKS, &[], status.refused_chunks);
        exposition.set(&metric::SPOOL_LOST_CHUNKS, &[], status.lost_chunks);
        exposition.set(&metric::SPOOL_DISK_FAILURES, &[], status.disk_failures);
    }

    /// Checks the spool. While the medium is away the check passes, as long as the disk takes the
    /// chunks.
    fn checks(&self, _: Duration, _now: Instant) -> Vec<Check> {
        let status = self.status();
        let away = status.route == SpoolRoute::Away;
        let mut check = Check::new("spool", !away || status.disk_error.is_none())
            .degraded(away)
            .with("route", status.route.name())
            .with("waiting_chunks", status.stats.waiting_chunks)
            .with("waiting_bytes", status.stats.waiting_bytes);
        if let Some(error) = &status.disk_error {
            check = check.with("disk_error", error.to_string());
        }
        vec![check]
    }
}
