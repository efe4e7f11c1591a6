//! Rows of traces, events and asynchronous executions to records.

use std::sync::Arc;

use baler_common::record::kieker::flow::trace::TraceMetadata;
use baler_common::record::kieker::flow::trace::operation::{
    AfterOperationEvent, AfterOperationFailedEvent, BeforeOperationEvent,
};
use baler_common::record::timing::AsyncOperationExecutionRecord;
use baler_common::record::{Interned, Record, RowWriter, Schema};

use super::expand::{Calls, Row, times};
use crate::clock::TickMapping;
use crate::probe::{self, BUSY_WORDS, CANCELLED, PANICKED};
use crate::queue::{CALL_WORDS, KIND, KIND_BEFORE, KIND_TRACE, TIN_UNIX_NS, TOUT_UNIX_NS};

impl Calls {
    /// The row of a trace or an event.
    #[inline(never)]
    pub(super) fn of_trace(
        &mut self,
        row: [u64; CALL_WORDS],
        mapping: &mut Option<TickMapping>,
    ) -> Row<'_> {
        let [header, trace_id, time, order, _] = row;
        if header & KIND == KIND_TRACE {
            return self.metadata(row, mapping);
        }
        let time = time_of(header, time, mapping);
        let (signature, class) = (self.signature(header >> 8), self.class(header >> 8));
        self.fields.clear();
        let mut row = RowWriter::new(&mut self.fields);
        row.i64(time);
        row.i64(trace_id.cast_signed());
        row.i32(low(order));
        row.interned(signature);
        row.interned(class);
        Row {
            schema: if header & KIND == KIND_BEFORE {
                BeforeOperationEvent::schema()
            } else {
                AfterOperationEvent::schema()
            },
            timestamp: time,
            fields: &self.fields,
        }
    }

    /// A trace that begins.
    fn metadata(
        &mut self,
        [header, trace_id, parent, time, thread_and_order]: [u64; CALL_WORDS],
        mapping: &mut Option<TickMapping>,
    ) -> Row<'_> {
        let time = time_of(header, time, mapping);
        let [t0, t1, t2, t3, o0, o1, o2, o3] = thread_and_order.to_be_bytes();
        self.fields.clear();
        let mut row = RowWriter::new(&mut self.fields);
        row.i64(trace_id.cast_signed());
        row.i64(i64::from(u32::from_be_bytes([t0, t1, t2, t3])));
        row.interned(self.session);
        row.interned(self.hostname);
        row.i64(parent.cast_signed());
        row.i32(i32::from_be_bytes([o0, o1, o2, o3]));
        Row {
            schema: TraceMetadata::schema(),
            timestamp: time,
            fields: &self.fields,
        }
    }

    /// Whether rows of this type are still to be made records of another one.
    #[inline]
    pub(super) fn is_unfinished(&self, schema: &Arc<Schema>) -> bool {
        Arc::ptr_eq(schema, probe::busy_words()) || Arc::ptr_eq(schema, probe::failed_in_ticks())
    }

    /// Makes such a row the record that it is.
    #[cold]
    pub(super) fn finish(
        &mut self,
        schema: &Arc<Schema>,
        ticks: u64,
        fields: &[u8],
        mapping: &mut Option<TickMapping>,
    ) -> Row<'_> {
        let (words, _) = fields.as_chunks::<8>();
        if Arc::ptr_eq(schema, probe::busy_words())
            && let Some(words) = words.first_chunk::<BUSY_WORDS>()
        {
            return self.execution(words.map(u64::from_le_bytes), mapping);
        }
        let time = time_of(0, ticks, mapping);
        self.fields.clear();
        RowWriter::new(&mut self.fields).i64(time);
        let behind = fields.get(self.fields.len()..).unwrap_or_default();
        self.fields.extend_from_slice(behind);
        Row {
            schema: AfterOperationFailedEvent::schema(),
            timestamp: time,
            fields: &self.fields,
        }
    }

    fn execution(
        &mut self,
        [header, trace_id, tin, tout, position, busy, ended]: [u64; BUSY_WORDS],
        mapping: &mut Option<TickMapping>,
    ) -> Row<'_> {
        let clocks = header & (TIN_UNIX_NS | TOUT_UNIX_NS);
        let (tin, tout) = times(clocks, tin, tout, mapping);
        let busy = match mapping {
            Some(mapping) if header & TIN_UNIX_NS == 0 => mapping.nanoseconds(busy),
            _ => busy,
        };
        // The two are rounded apart from each other.
        let busy = busy.min(tout.abs_diff(tin));
        let signature = self.signature(header >> 8);
        self.fields.clear();
        let mut row = RowWriter::new(&mut self.fields);
        row.interned(signature);
        row.interned(self.session);
        row.i64(trace_id.cast_signed());
        row.i64(tin);
        row.i64(tout);
        row.interned(self.hostname);
        row.i32(low(position >> 32));
        row.i32(low(position));
        row.u64(busy);
        row.u32(low(ended).cast_unsigned());
        row.bool(ended & CANCELLED != 0);
        row.bool(ended & PANICKED != 0);
        Row {
            schema: AsyncOperationExecutionRecord::schema(),
            timestamp: tout,
            fields: &self.fields,
        }
    }

    /// The class of the operation at the site with this number.
    fn class(&mut self, site: u64) -> Interned {
        let at = usize::try_from(site).unwrap_or(usize::MAX);
        if let Some(Some(class)) = self.classes.get(at) {
            return *class;
        }
        let class = probe::class_of(self.signature(site));
        // A number that no site has would make this as long as memory.
        if probe::signature(at).is_some() {
            if at >= self.classes.len() {
                self.classes.resize(at.saturating_add(1), None);
            }
            if let Some(known) = self.classes.get_mut(at) {
                *known = Some(class);
            }
        }
        class
    }
}

/// The lower half of a word.
fn low(word: u64) -> i32 {
    let [a, b, c, d, ..] = word.to_le_bytes();
    i32::from_le_bytes([a, b, c, d])
}

/// A single time, in ticks unless the header says otherwise.
fn time_of(header: u64, time: u64, mapping: &mut Option<TickMapping>) -> i64 {
    // As the end of a call that took no time.
    let clocks = if header & TOUT_UNIX_NS != 0 {
        TIN_UNIX_NS | TOUT_UNIX_NS
    } else {
        0
    };
    times(clocks, time, time, mapping).1
}
