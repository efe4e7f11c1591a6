//! Makes records of calls, of which a thread writes only what differs from call to call.

use std::sync::Arc;
use std::time::Instant;

use baler_common::record::kieker::OperationExecutionRecord;
use baler_common::record::timing::{AggregatedDurationRecord, DurationRecord};
use baler_common::record::{Interned, PushError, Record as _, RowWriter, Run, Schema};

use crate::clock::{TickMapping, is_in_ticks, monotonic, unmarked};
use crate::probe::{self, CallTotals, KIND_BITS, no_session};
use crate::queue::{CALL_WORDS, KIND, KIND_DURATION, QueueRow, QueueSet};
use crate::trace::eoi_and_ess;

/// The bytes of an operation execution in a batch, its strings as ids.
const EXECUTION_BYTES: usize = 44;

/// The same of a duration.
const DURATION_BYTES: usize = 20;

/// Makes records of calls and of calls that were added up.
#[derive(Debug)]
pub(super) struct CallConverter {
    /// From ticks to nanoseconds, once it is needed.
    mapping: Option<TickMapping>,
    hostname: Interned,
    session: Interned,
    /// By the number of the call site.
    signatures: Vec<Option<Interned>>,
}

/// The ids of the strings that the operation executions of a batch have in common.
pub(super) struct CommonStrings {
    session: u32,
    hostname: u32,
}

/// The record type of such a call, and how many bytes a record of it has with its timestamp.
pub(super) fn record_type(call: [u64; CALL_WORDS]) -> (&'static Arc<Schema>, usize) {
    if is_duration(call) {
        (DurationRecord::schema(), DURATION_BYTES + 8)
    } else {
        (OperationExecutionRecord::schema(), EXECUTION_BYTES + 8)
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
        }
    }

    /// Brings the clock up to date.
    pub(super) fn refresh(&mut self, now: Instant) {
        if let Some(mapping) = &mut self.mapping {
            mapping.refresh(now);
        }
    }

    /// The strings that all calls of a run have in common.
    ///
    /// # Errors
    ///
    /// Those of [`Run::string`].
    pub(super) fn common_strings(&self, run: &mut Run<'_>) -> Result<CommonStrings, PushError> {
        Ok(CommonStrings {
            session: run.string(self.session)?,
            hostname: run.string(self.hostname)?,
        })
    }

    /// Adds a call to a run of records of its [`record_type`]. Without `common` it is a duration.
    ///
    /// # Errors
    ///
    /// Those of [`Run::push`]; the call was not added.
    #[inline]
    pub(super) fn push(
        &mut self,
        call: [u64; CALL_WORDS],
        common: Option<&CommonStrings>,
        run: &mut Run<'_>,
    ) -> Result<(), PushError> {
        let [header, trace_id, tin, tout, position] = call;
        let (tin, tout) = self.times(tin, tout);
        let signature = run.string(self.signature(header >> KIND_BITS))?;
        let Some(common) = common else {
            return run.push(tout, |row: &mut [u8; DURATION_BYTES]| {
                let mut rest = row.as_mut_slice();
                put(&mut rest, signature.to_le_bytes());
                put(&mut rest, tin.to_le_bytes());
                put(&mut rest, tout.to_le_bytes());
            });
        };
        let [eoi, ess] = eoi_and_ess(position);
        run.push(tout, |row: &mut [u8; EXECUTION_BYTES]| {
            let mut rest = row.as_mut_slice();
            put(&mut rest, signature.to_le_bytes());
            put(&mut rest, common.session.to_le_bytes());
            put(&mut rest, trace_id.to_le_bytes());
            put(&mut rest, tin.to_le_bytes());
            put(&mut rest, tout.to_le_bytes());
            put(&mut rest, common.hostname.to_le_bytes());
            put(&mut rest, eoi.to_le_bytes());
            put(&mut rest, ess.to_le_bytes());
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
            None => time.cast_signed(),
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
            Some(mapping) if (tin | tout).cast_signed() >= 0 => {
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

/// Writes the next bytes of a row.
#[inline(always)]
fn put<const BYTES: usize>(rest: &mut &mut [u8], bytes: [u8; BYTES]) {
    if let Some((place, left)) = std::mem::take(rest).split_first_chunk_mut() {
        *place = bytes;
        *rest = left;
    }
}
