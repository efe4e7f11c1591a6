//! Turns rows of calls into records. A row holds only the values that differ from call to call.

use std::sync::Arc;
use std::time::Instant;

use baler_common::number::{to_u64, to_usize};
use baler_common::record::timing::{AggregatedDurationRecord, DurationRecord};
use baler_common::record::{
    BatchBuilder, FieldColumn, Interned, PushError, Record as _, RowWriter, Schema,
};
use baler_connector_kieker::types::OperationExecutionRecord;

use crate::clock::{TickMapping, is_in_ticks, monotonic, unmarked};
use crate::probe::{self, CallTotals, KIND_BITS, no_session};
use crate::queue::{CALL_WORDS, KIND, KIND_DURATION, QueueRow, QueueSet};
use crate::trace::eoi_and_ess;

/// The size of a call in a batch, in bytes: its row and its timestamp.
const CALL_BYTES: usize = 52;

/// Calls of one kind, column by column.
#[derive(Debug, Default)]
struct CallColumns {
    signatures: Vec<Interned>,
    traces: Vec<i64>,
    tins: Vec<i64>,
    touts: Vec<i64>,
    eois: Vec<i32>,
    esss: Vec<i32>,
}

impl CallColumns {
    /// Replaces the columns by the columns of these calls. Durations have no trace and no position.
    fn fill(&mut self, calls: &[[u64; CALL_WORDS]], converter: &mut CallConverter) {
        self.signatures.clear();
        let signatures = calls.iter().map(|[header, ..]| header >> KIND_BITS);
        self.signatures
            .extend(signatures.map(|site| converter.signature(site)));
        self.traces.clear();
        self.traces
            .extend(calls.iter().map(|[_, trace, ..]| *trace as i64));
        let mut times = (
            std::mem::take(&mut self.tins),
            std::mem::take(&mut self.touts),
        );
        times.0.clear();
        times.1.clear();
        times.extend(
            calls
                .iter()
                .map(|[_, _, tin, tout, _]| converter.times(*tin, *tout)),
        );
        (self.tins, self.touts) = times;
        let positions = || calls.iter().map(|[.., position]| eoi_and_ess(*position));
        self.eois.clear();
        self.eois.extend(positions().map(|[eoi, _]| eoi));
        self.esss.clear();
        self.esss.extend(positions().map(|[_, ess]| ess));
    }
}

/// Makes records of single calls and of aggregated calls.
#[derive(Debug)]
pub(super) struct CallConverter {
    /// Converts ticks to nanoseconds; created when it is first needed.
    mapping: Option<TickMapping>,
    hostname: Interned,
    session: Interned,
    /// Indexed by the number of the call site.
    signatures: Vec<Option<Interned>>,
    /// The calls that go to the batch next.
    calls: Vec<[u64; CALL_WORDS]>,
    columns: CallColumns,
}

/// Returns the type of the record that this call becomes.
pub(super) fn record_type(call: [u64; CALL_WORDS]) -> &'static Arc<Schema> {
    if is_duration(call) {
        DurationRecord::schema()
    } else {
        OperationExecutionRecord::schema()
    }
}

/// Whether the call becomes a duration record; otherwise it becomes an operation execution.
#[inline]
pub(super) fn is_duration([header, ..]: [u64; CALL_WORDS]) -> bool {
    header & KIND == KIND_DURATION
}

impl CallConverter {
    /// Creates a converter for the queues with this key. `hostname` goes into their records.
    pub(super) fn new(key: u64, hostname: Interned) -> Self {
        Self {
            mapping: is_in_ticks(key).then(TickMapping::new),
            hostname,
            session: no_session(),
            signatures: Vec::new(),
            calls: Vec::new(),
            columns: CallColumns::default(),
        }
    }

    /// Refreshes the mapping from ticks to nanoseconds.
    pub(super) fn refresh(&mut self, now: Instant) {
        if let Some(mapping) = &mut self.mapping {
            mapping.refresh(now);
        }
    }

    /// Forgets the calls, which are in the batch now.
    pub(super) fn clear(&mut self) {
        self.calls.clear();
    }

    /// Returns the number of calls and their approximate size in bytes.
    #[inline]
    pub(super) fn len(&self) -> (usize, usize) {
        let calls = self.calls.len();
        (calls, calls * CALL_BYTES)
    }

    /// Adds a call. All calls since [`Self::clear`] are of one [`record_type`].
    #[inline]
    pub(super) fn add(&mut self, call: [u64; CALL_WORDS]) {
        self.calls.push(call);
    }

    /// Adds the calls, which are all of this [`record_type`], to a batch. Returns the number of
    /// added calls, and the error of the next one.
    pub(super) fn append_to(
        &mut self,
        batch: &mut BatchBuilder,
        schema: &Arc<Schema>,
    ) -> (usize, Result<(), PushError>) {
        let calls = std::mem::take(&mut self.calls);
        let mut columns = std::mem::take(&mut self.columns);
        columns.fill(&calls, self);
        let [signatures, tin, tout] = [
            FieldColumn::Strings(&columns.signatures),
            FieldColumn::I64(&columns.tins),
            FieldColumn::I64(&columns.touts),
        ];
        let added = if Arc::ptr_eq(schema, DurationRecord::schema()) {
            batch.push_columns(schema, &columns.touts, &[signatures, tin, tout])
        } else {
            let fields = [
                signatures,
                FieldColumn::SameString(self.session),
                FieldColumn::I64(&columns.traces),
                tin,
                tout,
                FieldColumn::SameString(self.hostname),
                FieldColumn::I32(&columns.eois),
                FieldColumn::I32(&columns.esss),
            ];
            batch.push_columns(schema, &columns.touts, &fields)
        };
        (self.calls, self.columns) = (calls, columns);
        added
    }

    /// Queues a record of each call site's totals since the last time.
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

    /// Writes the record of a call site's totals and returns its timestamp.
    fn write_aggregate(&mut self, site: usize, content: &CallTotals, fields: &mut Vec<u8>) -> i64 {
        let signature = self.signature(to_u64(site));
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

    /// Returns the signature of the call site with this number.
    #[inline]
    fn signature(&mut self, site: u64) -> Interned {
        let at = to_usize(site);
        match self.signatures.get(at) {
            Some(Some(signature)) => *signature,
            _ => self.find_signature(at),
        }
    }

    /// Looks the signature up in the registry of call sites.
    #[cold]
    fn find_signature(&mut self, site: usize) -> Interned {
        // No site has this number: no probe wrote the row.
        let Some(signature) = probe::signature(site) else {
            return Interned::new("<unknown>");
        };
        if site >= self.signatures.len() {
            self.signatures.resize(site + 1, None);
        }
        if let Some(known) = self.signatures.get_mut(site) {
            *known = Some(signature);
        }
        signature
    }

    /// Returns the start and the end of a call, in nanoseconds since the Unix epoch.
    #[inline]
    fn times(&mut self, tin: u64, tout: u64) -> (i64, i64) {
        match &self.mapping {
            // Neither is marked: both are in ticks.
            Some(mapping) if ((tin | tout) as i64) >= 0 => {
                let end = tout.max(tin);
                let (duration, tout) = (mapping.nanoseconds(end - tin), mapping.unix_ns(end));
                (tout.saturating_sub_unsigned(duration), tout)
            }
            _ => self.marked_times(tin, tout),
        }
    }

    /// As [`Self::times`], for a call of which at least one end is not in ticks, or that began or
    /// ended under another controller's clock.
    #[cold]
    fn marked_times(&mut self, tin: u64, tout: u64) -> (i64, i64) {
        let [tin, tout] = [tin, tout].map(|time| {
            unmarked(time).unwrap_or_else(|| {
                let mapping = self.mapping.get_or_insert_with(TickMapping::new);
                mapping.refresh(monotonic());
                mapping.unix_ns(time)
            })
        });
        // The clock may have been set back meanwhile: the duration must not be negative.
        (tin, tout.max(tin))
    }
}

#[cfg(test)]
mod tests;
