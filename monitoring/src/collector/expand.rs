//! Rows as threads leave them to rows as batches take them.

use std::sync::Arc;
use std::time::Instant;

#[cfg(feature = "enable")]
use baler_common::record::kieker::controlflow::OperationExecutionRecord;
#[cfg(feature = "enable")]
use baler_common::record::timing::{AggregatedDurationRecord, DurationRecord};
use baler_common::record::{Interned, Schema};
#[cfg(feature = "enable")]
use baler_common::record::{PushError, Record, RowWriter, Run};

use crate::clock::{TickMapping, is_in_ticks};
#[cfg(feature = "enable")]
use crate::clock::{monotonic, unmarked};
#[cfg(feature = "enable")]
use crate::probe::{self, Content, KIND_BITS};
#[cfg(feature = "enable")]
use crate::queue::{
    CALL_WORDS, DURATION_WORDS, KIND, KIND_DURATION, KIND_TRACE, RowRef, TIN_UNIX_NS, TOUT_UNIX_NS,
};
use crate::queue::{Stamp, Stored};
#[cfg(feature = "enable")]
use crate::trace::eoi_and_ess;

/// A record on its way into a batch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row<'a> {
    /// The record's type.
    pub(crate) schema: &'a Arc<Schema>,
    /// Nanoseconds since the Unix epoch, or `NO_TIMESTAMP`.
    pub(crate) timestamp: i64,
    /// The fields.
    pub(crate) fields: &'a [u8],
}

/// Converts ticks, and makes whole records of calls, of which a thread writes only what differs
/// from call to call.
#[derive(Debug)]
pub(super) struct Expander {
    mapping: Option<TickMapping>,
    #[cfg(feature = "enable")]
    calls: Calls,
}

/// What is the same in many calls.
#[cfg(feature = "enable")]
#[derive(Debug)]
pub(super) struct Calls {
    pub(super) hostname: Interned,
    pub(super) session: Interned,
    /// By the number of the call site.
    signatures: Vec<Option<Interned>>,
    /// Classes of those whose events are told, by the number of the call site.
    pub(super) classes: Vec<Option<Interned>>,
    pub(super) fields: Vec<u8>,
    /// The strings' ids in the batch of this lane and number, once they are known.
    ids: Ids,
    /// Those of durations, which have no session and no host.
    duration_ids: Ids,
}

/// Ids of strings in the batch that is being filled.
#[cfg(feature = "enable")]
#[derive(Debug, Default)]
struct Ids {
    /// In which batch; `None` before the first one.
    batch: Option<(usize, u64)>,
    session: u32,
    hostname: u32,
    /// By the number of the call site, one more than the id; 0 if it is not known yet.
    signatures: Vec<u32>,
}

impl Expander {
    /// An expander for queues with this key, whose calls are made on this machine.
    pub(super) fn new(
        key: u64,
        #[cfg_attr(
            not(feature = "enable"),
            expect(unused_variables, reason = "for calls")
        )]
        hostname: Interned,
    ) -> Self {
        Self {
            mapping: is_in_ticks(key).then(TickMapping::new),
            #[cfg(feature = "enable")]
            calls: Calls {
                hostname,
                // Kieker's, where there is none (`OperationExecutionRecord.NO_SESSION_ID`).
                session: Interned::new("<no-session-id>"),
                signatures: Vec::new(),
                classes: Vec::new(),
                fields: Vec::new(),
                ids: Ids::default(),
                duration_ids: Ids::default(),
            },
        }
    }

    /// Adds a call to a run of calls, in the batch of this lane and number.
    ///
    /// # Errors
    ///
    /// The batch's, which is then as it was.
    #[cfg(feature = "enable")]
    #[inline]
    pub(super) fn push_call(
        &mut self,
        call: [u64; CALL_WORDS],
        batch: (usize, u64),
        run: &mut Run<'_>,
    ) -> Result<(), PushError> {
        let [header, trace_id, tin, tout, position] = call;
        let (tin, tout) = times_of(tin, tout, &mut self.mapping);
        let site = usize::try_from(header >> KIND_BITS).unwrap_or(usize::MAX);
        let ids = &self.calls.ids;
        let (signature, session, hostname) = match ids.signatures.get(site) {
            Some(more) if *more != 0 && ids.batch == Some(batch) => {
                (more.wrapping_sub(1), ids.session, ids.hostname)
            }
            _ => self.calls.learn_ids(site, batch, run)?,
        };
        // As `OperationExecutionRecord` has its fields.
        run.push(tout, |row: &mut [u8; 44]| {
            let mut rest = row.as_mut_slice();
            put(&mut rest, signature.to_le_bytes());
            put(&mut rest, session.to_le_bytes());
            put(&mut rest, trace_id.to_le_bytes());
            put(&mut rest, tin.to_le_bytes());
            put(&mut rest, tout.to_le_bytes());
            put(&mut rest, hostname.to_le_bytes());
            // Its eoi is the upper half, which comes first.
            put(
                &mut rest,
                eoi_and_ess(position).rotate_left(32).to_le_bytes(),
            );
        })
    }

    /// Adds a duration to a run of durations, in the batch of this lane and number.
    ///
    /// # Errors
    ///
    /// The batch's, which is then as it was.
    #[cfg(feature = "enable")]
    #[inline]
    pub(super) fn push_duration(
        &mut self,
        [header, tin, tout]: [u64; DURATION_WORDS],
        batch: (usize, u64),
        run: &mut Run<'_>,
    ) -> Result<(), PushError> {
        let (tin, tout) = times_of(tin, tout, &mut self.mapping);
        let site = usize::try_from(header >> KIND_BITS).unwrap_or(usize::MAX);
        let ids = &self.calls.duration_ids;
        let signature = match ids.signatures.get(site) {
            Some(more) if *more != 0 && ids.batch == Some(batch) => more.wrapping_sub(1),
            _ => self.calls.learn_duration_id(site, batch, run)?,
        };
        // As `DurationRecord` has its fields.
        run.push(tout, |row: &mut [u8; 20]| {
            let mut rest = row.as_mut_slice();
            put(&mut rest, signature.to_le_bytes());
            put(&mut rest, tin.to_le_bytes());
            put(&mut rest, tout.to_le_bytes());
        })
    }

    /// Brings the clock up to date.
    pub(super) fn refresh(&mut self, now: Instant) {
        if let Some(mapping) = &mut self.mapping {
            mapping.refresh(now);
        }
    }

    /// A time in ticks, in nanoseconds since the Unix epoch.
    #[inline]
    pub(super) fn unix_ns(&self, ticks: u64) -> i64 {
        let mapping = self.mapping.as_ref();
        mapping.map_or(0, |mapping| mapping.unix_ns(ticks))
    }

    /// The row of calls that were added up at the site with this number.
    #[cfg(feature = "enable")]
    pub(super) fn aggregate(&mut self, site: usize, content: &Content) -> RowRef<'_> {
        let mapping = self.mapping.as_ref();
        let time = |time: u64| match mapping {
            Some(mapping) => mapping.unix_ns(time),
            None => time.cast_signed(),
        };
        let duration = |time| mapping.map_or(time, |mapping| mapping.nanoseconds(time));
        let (tin, tout) = (time(content.tin), time(content.tout));
        let buckets = || {
            (0_u32..)
                .zip(&content.buckets)
                .filter(|(_, calls)| **calls > 0)
        };
        let signature = self
            .calls
            .signature(u64::try_from(site).unwrap_or(u64::MAX));
        self.calls.fields.clear();
        let mut row = RowWriter::new(&mut self.calls.fields);
        row.interned(signature);
        row.interned(self.calls.hostname);
        row.i64(tin);
        row.i64(tout.max(tin));
        row.u64(content.count);
        row.u64(duration(content.sum));
        row.u64(duration(content.min));
        row.u64(duration(content.max));
        row.list(buckets().count());
        buckets().for_each(|(bucket, _)| row.u32(bucket));
        row.list(buckets().count());
        buckets().for_each(|(_, calls)| row.u64(*calls));
        RowRef::Fields {
            schema: AggregatedDurationRecord::schema(),
            stamp: Stamp::UnixNs(tout.max(tin)),
            fields: &self.calls.fields,
        }
    }

    /// The row that a batch takes.
    #[cfg_attr(
        not(feature = "enable"),
        expect(
            clippy::needless_pass_by_ref_mut,
            reason = "calls are made in a buffer"
        )
    )]
    #[inline]
    pub(super) fn expand<'a>(&'a mut self, stored: Stored<'a>) -> Row<'a> {
        match stored {
            #[cfg(feature = "enable")]
            Stored::Call(call) => self.calls.expand(call, &mut self.mapping),
            #[cfg(feature = "enable")]
            Stored::Fields {
                schema,
                stamp: Stamp::Ticks(ticks),
                fields,
            } if self.calls.is_unfinished(schema) => {
                self.calls.finish(schema, ticks, fields, &mut self.mapping)
            }
            Stored::Fields {
                schema,
                stamp,
                fields,
            } => Row {
                schema,
                timestamp: match stamp {
                    Stamp::UnixNs(time) => time,
                    Stamp::Ticks(ticks) => self.unix_ns(ticks),
                },
                fields,
            },
        }
    }
}

#[cfg(feature = "enable")]
impl Ids {
    /// Remembers the id of the signature of a site in a batch, if there are more sites than this.
    fn learn(&mut self, site: usize, signature: u32, batch: (usize, u64), sites: usize) {
        if self.batch != Some(batch) {
            self.signatures.clear();
        }
        self.batch = Some(batch);
        // Only numbers of sites that there are.
        if site < sites {
            if site >= self.signatures.len() {
                self.signatures.resize(site.saturating_add(1), 0);
            }
            if let Some(known) = self.signatures.get_mut(site) {
                *known = signature.saturating_add(1);
            }
        }
    }
}

#[cfg(feature = "enable")]
impl Calls {
    #[inline]
    fn expand(
        &mut self,
        [header, trace_id, tin, tout, position]: [u64; CALL_WORDS],
        mapping: &mut Option<TickMapping>,
    ) -> Row<'_> {
        if header & KIND >= KIND_TRACE {
            return self.of_trace([header, trace_id, tin, tout, position], mapping);
        }
        // A duration has no trace: its times come first.
        let (tin, tout) = if header & KIND == KIND_DURATION {
            (trace_id, tin)
        } else {
            (tin, tout)
        };
        let (tin, tout) = times_of(tin, tout, mapping);
        let signature = self.signature(header >> 8);
        self.fields.clear();
        let mut row = RowWriter::new(&mut self.fields);
        row.interned(signature);
        if header & KIND == KIND_DURATION {
            row.i64(tin);
            row.i64(tout);
            return Row {
                schema: DurationRecord::schema(),
                timestamp: tout,
                fields: &self.fields,
            };
        }
        row.interned(self.session);
        row.i64(trace_id.cast_signed());
        row.i64(tin);
        row.i64(tout);
        row.interned(self.hostname);
        let [e0, e1, e2, e3, s0, s1, s2, s3] = eoi_and_ess(position).to_be_bytes();
        row.i32(i32::from_be_bytes([e0, e1, e2, e3]));
        row.i32(i32::from_be_bytes([s0, s1, s2, s3]));
        Row {
            schema: OperationExecutionRecord::schema(),
            timestamp: tout,
            fields: &self.fields,
        }
    }

    /// The ids of the strings of a call at this site in a batch: signature, session, host name.
    #[cold]
    #[inline(never)]
    fn learn_ids(
        &mut self,
        site: usize,
        batch: (usize, u64),
        run: &mut Run<'_>,
    ) -> Result<(u32, u32, u32), PushError> {
        let signature = self.signature(u64::try_from(site).unwrap_or(u64::MAX));
        // In the order of a row, so that the batch is the same as one of rows.
        let signature = run.string(signature)?;
        let session = run.string(self.session)?;
        let hostname = run.string(self.hostname)?;
        self.ids.session = session;
        self.ids.hostname = hostname;
        self.ids
            .learn(site, signature, batch, self.signatures.len());
        Ok((signature, session, hostname))
    }

    /// The id of the signature of a duration at this site in a batch.
    #[cold]
    #[inline(never)]
    fn learn_duration_id(
        &mut self,
        site: usize,
        batch: (usize, u64),
        run: &mut Run<'_>,
    ) -> Result<u32, PushError> {
        let signature = self.signature(u64::try_from(site).unwrap_or(u64::MAX));
        let signature = run.string(signature)?;
        self.duration_ids
            .learn(site, signature, batch, self.signatures.len());
        Ok(signature)
    }

    pub(super) fn signature(&mut self, site: u64) -> Interned {
        let at = usize::try_from(site).unwrap_or(usize::MAX);
        if let Some(Some(signature)) = self.signatures.get(at) {
            return *signature;
        }
        self.find(at)
    }

    /// Asks the call sites.
    #[cold]
    fn find(&mut self, site: usize) -> Interned {
        // A number that no site has would be a row that nobody wrote.
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
}

/// When a call began and ended, in nanoseconds since the Unix epoch.
#[cfg(feature = "enable")]
#[inline]
fn times_of(tin: u64, tout: u64, mapping: &mut Option<TickMapping>) -> (i64, i64) {
    match mapping {
        // Neither is marked.
        Some(mapping) if (tin | tout).cast_signed() >= 0 => {
            let duration = mapping.nanoseconds(tout.saturating_sub(tin));
            let tout = mapping.unix_ns(tout.max(tin));
            (tout.saturating_sub_unsigned(duration), tout)
        }
        _ => marked_times(tin, tout, mapping),
    }
}

/// Writes the next bytes of a row.
#[cfg(feature = "enable")]
#[inline(always)]
fn put<const BYTES: usize>(rest: &mut &mut [u8], bytes: [u8; BYTES]) {
    if let Some((place, behind)) = std::mem::take(rest).split_first_chunk_mut() {
        *place = bytes;
        *rest = behind;
    }
}

/// The times of a call that has no ticks, or began or ended under another controller's clock.
#[cfg(feature = "enable")]
#[cold]
pub(super) fn times(
    clocks: u64,
    tin: u64,
    tout: u64,
    mapping: &mut Option<TickMapping>,
) -> (i64, i64) {
    let mut unix_ns = |time: u64, flag: u64| {
        if clocks & flag != 0 {
            return time.cast_signed();
        }
        let mapping = mapping.get_or_insert_with(|| {
            let mut mapping = TickMapping::new();
            mapping.refresh(monotonic());
            mapping
        });
        mapping.unix_ns(time)
    };
    let tin = unix_ns(tin, TIN_UNIX_NS);
    // A clock that was set back meanwhile must not give a negative duration.
    (tin, unix_ns(tout, TOUT_UNIX_NS).max(tin))
}

/// The same, of times that are marked if they are not in ticks.
#[cfg(feature = "enable")]
#[cold]
fn marked_times(tin: u64, tout: u64, mapping: &mut Option<TickMapping>) -> (i64, i64) {
    let flag = |time: u64, flag: u64| if unmarked(time).is_some() { flag } else { 0 };
    let plain = |time: u64| unmarked(time).map_or(time, i64::cast_unsigned);
    let clocks = flag(tin, TIN_UNIX_NS) | flag(tout, TOUT_UNIX_NS);
    times(clocks, plain(tin), plain(tout), mapping)
}
