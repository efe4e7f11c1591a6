//! Rows as threads leave them to rows as batches take them.

use std::sync::Arc;
use std::time::Instant;

#[cfg(feature = "enable")]
use baler_common::record::kieker::controlflow::OperationExecutionRecord;
#[cfg(feature = "enable")]
use baler_common::record::timing::{AggregatedDurationRecord, DurationRecord};
use baler_common::record::{Interned, Schema};
#[cfg(feature = "enable")]
use baler_common::record::{Record, RowWriter};

#[cfg(feature = "enable")]
use crate::clock::monotonic;
use crate::clock::{TickMapping, is_in_ticks};
#[cfg(feature = "enable")]
use crate::probe::{self, Content};
#[cfg(feature = "enable")]
use crate::queue::{
    CALL_WORDS, KIND, KIND_DURATION, KIND_TRACE, RowRef, TIN_UNIX_NS, TOUT_UNIX_NS,
};
use crate::queue::{Stamp, Stored};

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
            },
        }
    }

    /// Brings the clock up to date.
    pub(super) fn refresh(&mut self, now: Instant) {
        if let Some(mapping) = &mut self.mapping {
            mapping.refresh(now);
        }
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
                    Stamp::Ticks(ticks) => {
                        let mapping = self.mapping.as_ref();
                        mapping.map_or(0, |mapping| mapping.unix_ns(ticks))
                    }
                },
                fields,
            },
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
        let clocks = header & (TIN_UNIX_NS | TOUT_UNIX_NS);
        let (tin, tout) = match mapping {
            Some(mapping) if clocks == 0 => {
                let duration = mapping.nanoseconds(tout.saturating_sub(tin));
                let tout = mapping.unix_ns(tout.max(tin));
                (tout.saturating_sub_unsigned(duration), tout)
            }
            _ => times(clocks, tin, tout, mapping),
        };
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
        let [e0, e1, e2, e3, s0, s1, s2, s3] = position.to_be_bytes();
        row.i32(i32::from_be_bytes([e0, e1, e2, e3]));
        row.i32(i32::from_be_bytes([s0, s1, s2, s3]));
        Row {
            schema: OperationExecutionRecord::schema(),
            timestamp: tout,
            fields: &self.fields,
        }
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
