//! Makes records of calls, of which a thread writes only what differs from call to call.

use std::sync::Arc;
use std::time::Instant;

use baler_common::record::kieker::OperationExecutionRecord;
use baler_common::record::timing::{AggregatedDurationRecord, DurationRecord};
use baler_common::record::{
    BatchBuilder, Interned, PushError, Record, RowWriter, Schema, WordRows, WordSink, WordText,
};

use crate::clock::{TickMapping, is_in_ticks, monotonic, unmarked};
use crate::probe::{self, CallTotals, KIND_BITS, no_session};
use crate::queue::{CALL_WORDS, KIND, KIND_DURATION, QueueRow, QueueSet};
use crate::trace::eoi_and_ess;

/// A call with its place in a trace: the fields of an `OperationExecutionRecord`.
#[derive(Debug, Record)]
#[record(name = "baler.monitoring.Execution")]
struct Execution {
    operation_signature: Interned,
    session_id: Interned,
    trace_id: i64,
    tin: i64,
    tout: i64,
    hostname: Interned,
    eoi: i32,
    ess: i32,
}

/// A call without it: the fields of a `DurationRecord`.
#[derive(Debug, Record)]
#[record(name = "baler.monitoring.Duration")]
struct Duration {
    operation_signature: Interned,
    tin: i64,
    tout: i64,
}

/// Rows of words, as batches take them, made of calls of one kind.
#[derive(Debug, Default)]
struct CallRows {
    words: Vec<u64>,
    /// Where each row begins.
    starts: Vec<u32>,
}

impl WordSink for &mut CallRows {
    type Output = ();

    #[inline(always)]
    fn put<const WORDS: usize, const TEXTS: usize>(
        self,
        _texts: [WordText<'_>; TEXTS],
        words: impl FnOnce() -> [u64; WORDS],
    ) {
        // A block has fewer words than this type can count.
        self.starts.extend(u32::try_from(self.words.len()));
        self.words.extend_from_slice(&words());
    }
}

/// Makes records of calls and of calls that were added up.
#[derive(Debug)]
pub(super) struct CallConverter {
    /// From ticks to nanoseconds, once it is needed.
    mapping: Option<TickMapping>,
    hostname: Interned,
    session: Interned,
    /// By the number of the call site.
    signatures: Vec<Option<Interned>>,
    /// The calls that go to the batch next.
    rows: CallRows,
}

/// The type of the record that is made of such a call.
pub(super) fn record_type(call: [u64; CALL_WORDS]) -> &'static Arc<Schema> {
    if is_duration(call) {
        DurationRecord::schema()
    } else {
        OperationExecutionRecord::schema()
    }
}

/// Whether it is a duration; else it is an operation execution.
#[inline]
pub(super) fn is_duration([header, ..]: [u64; CALL_WORDS]) -> bool {
    header & KIND == KIND_DURATION
}

impl CallConverter {
    /// For queues with this key, whose calls are made on this machine.
    pub(super) fn new(key: u64, hostname: Interned) -> Self {
        Self {
            mapping: is_in_ticks(key).then(TickMapping::new),
            hostname,
            session: no_session(),
            signatures: Vec::new(),
            rows: CallRows::default(),
        }
    }

    /// Brings the clock up to date.
    pub(super) fn refresh(&mut self, now: Instant) {
        if let Some(mapping) = &mut self.mapping {
            mapping.refresh(now);
        }
    }

    /// Forgets the rows that went to the batch.
    pub(super) fn clear(&mut self) {
        self.rows.words.clear();
        self.rows.starts.clear();
    }

    /// How many rows there are, and their bytes.
    pub(super) fn len(&self) -> (usize, usize) {
        let bytes = self.rows.words.len().saturating_mul(8);
        (self.rows.starts.len(), bytes)
    }

    /// Makes a row of a call. All rows since [`Self::clear`] are of one [`record_type`].
    #[inline]
    pub(super) fn add(&mut self, call: [u64; CALL_WORDS]) {
        let [header, trace_id, tin, tout, position] = call;
        let (tin, tout) = self.times(tin, tout);
        let operation_signature = self.signature(header >> KIND_BITS);
        let row = if is_duration(call) {
            Duration {
                operation_signature,
                tin,
                tout,
            }
            .write_words(&mut self.rows)
        } else {
            let [eoi, ess] = eoi_and_ess(position);
            Execution {
                operation_signature,
                session_id: self.session,
                trace_id: trace_id as i64,
                tin,
                tout,
                hostname: self.hostname,
                eoi,
                ess,
            }
            .write_words(&mut self.rows)
        };
        // Derived types of numbers and interned strings are always words.
        row.unwrap_or_default();
    }

    /// Adds the rows to a batch. Returns how many were added, and why the next one was not.
    pub(super) fn append_to(
        &self,
        batch: &mut BatchBuilder,
        schema: &Arc<Schema>,
    ) -> (usize, Result<(), PushError>) {
        let rows = WordRows {
            starts: &self.rows.starts,
            end: self.rows.words.len(),
            head: 0,
            // Words lie by descending width, the last field of a width first: that is `tout`.
            time: 0,
        };
        let run = batch.words(schema);
        run.map_or((0, Err(PushError::Malformed)), |mut run| {
            run.extend(self.rows.words.as_slice(), &rows, |bits| bits as i64)
        })
    }

    /// Queues records of all calls that were added up for these queues since the last time.
    pub(super) fn queue_aggregates(&mut self, set: &QueueSet) {
        let mut fields = Vec::new();
        probe::take_all(set.key(), |site, content| {
            fields.clear();
            let timestamp = self.write_aggregate(site, &content, &mut fields);
            set.push_own(&QueueRow::Record {
                schema: AggregatedDurationRecord::schema(),
                timestamp,
                fields: &fields,
            });
        });
    }

    /// Writes the record of calls that were added up at the site with this number; its timestamp.
    fn write_aggregate(&mut self, site: usize, content: &CallTotals, fields: &mut Vec<u8>) -> i64 {
        let signature = self.signature(u64::try_from(site).unwrap_or(u64::MAX));
        let mapping = self.mapping.as_ref();
        let time = |time: u64| match mapping {
            Some(mapping) => mapping.unix_ns(time),
            None => time as i64,
        };
        let duration = |time| mapping.map_or(time, |mapping| mapping.nanoseconds(time));
        let tin = time(content.tin);
        let tout = time(content.tout).max(tin);
        let buckets = || {
            (0_u32..)
                .zip(&content.buckets)
                .filter(|(_, calls)| **calls > 0)
        };
        let mut row = RowWriter::new(fields);
        row.interned(signature);
        row.interned(self.hostname);
        row.i64(tin);
        row.i64(tout);
        row.u64(content.count);
        row.u64(duration(content.sum));
        row.u64(duration(content.min));
        row.u64(duration(content.max));
        row.list(buckets().count());
        buckets().for_each(|(bucket, _)| row.u32(bucket));
        row.list(buckets().count());
        buckets().for_each(|(_, calls)| row.u64(*calls));
        tout
    }

    /// The signature at the call site with this number.
    #[inline]
    fn signature(&mut self, site: u64) -> Interned {
        let at = usize::try_from(site).unwrap_or(usize::MAX);
        match self.signatures.get(at) {
            Some(Some(signature)) => *signature,
            _ => self.find_signature(at),
        }
    }

    /// Asks the call sites.
    #[cold]
    fn find_signature(&mut self, site: usize) -> Interned {
        // No site has this number: no probe wrote the row.
        let Some(signature) = probe::signature(site) else {
            return Interned::new("<unknown>");
        };
        if site >= self.signatures.len() {
            self.signatures.resize(site.saturating_add(1), None);
        }
        if let Some(known) = self.signatures.get_mut(site) {
            *known = Some(signature);
        }
        signature
    }

    /// When a call began and ended, in nanoseconds since the Unix epoch.
    #[inline]
    fn times(&mut self, tin: u64, tout: u64) -> (i64, i64) {
        match &self.mapping {
            // Neither is marked: both are in ticks.
            Some(mapping) if ((tin | tout) as i64) >= 0 => {
                let duration = mapping.nanoseconds(tout.saturating_sub(tin));
                let tout = mapping.unix_ns(tout.max(tin));
                (tout.saturating_sub_unsigned(duration), tout)
            }
            _ => self.marked_times(tin, tout),
        }
    }

    /// The times of a call of which at least one end is not in ticks, or that began or ended under
    /// another controller's clock.
    #[cold]
    fn marked_times(&mut self, tin: u64, tout: u64) -> (i64, i64) {
        let [tin, tout] = [tin, tout].map(|time| {
            unmarked(time).unwrap_or_else(|| {
                let mapping = self.mapping.get_or_insert_with(TickMapping::new);
                mapping.refresh(monotonic());
                mapping.unix_ns(time)
            })
        });
        // A clock that was set back meanwhile must not give a negative duration.
        (tin, tout.max(tin))
    }
}

#[cfg(test)]
mod tests;
