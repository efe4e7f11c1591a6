//! Collects the records of each trace until the trace is closed.
//!
//! A trace is closed when the newest record is later than its first one by more than the maximum
//! duration, when too many records wait, or at the end. Until then the order of arrival does not
//! matter.

use std::collections::hash_map::Entry;
use std::collections::{HashSet, VecDeque};
use std::time::Duration;

use baler_common::record::{Column, Record as _, RecordBatch, Table};
use baler_connector_kieker::w3c;
use foldhash::HashMap;

use super::counts::TraceCounts;
use super::events::{Event, EventCalls, EventKind};
use super::operations::{KindId, OperationId, Operations, TextId, Texts, without_async};
use super::spans::{self, Span, SpanRecord};
use super::tree::{Call, Outcome, Reason, Trace, nanos_between, sort_without_copies};
use crate::parcel::{Parcel, rows_by_table};

/// The number of remembered closed traces, to recognise late records.
const REMEMBERED: usize = 500_000;

/// The cost of a waiting trace beside its records, measured in records.
const TRACE_OVERHEAD: usize = 4;

/// Kieker's text for no session.
pub(super) const NO_SESSION: &str = "<no-session-id>";

/// The settings for assembling traces.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct TraceSettings {
    /// A trace that lasts longer is invalid. Default: ten minutes, as in Kieker.
    pub max_duration: Duration,
    /// The most records that wait for the rest of their traces, besides those of one chunk and an
    /// eighth. Beyond it complete traces are closed, and if too many still wait, the traces that have
    /// been idle longest. Default: 4 million, about 200 MiB.
    pub max_waiting: usize,
    /// Whether to add missing ends of calls among events. Default: no.
    pub repair: bool,
    /// Only these traces are assembled. Default: all.
    pub only: Option<HashSet<i64>>,
    /// Whether chunks are remembered, and a chunk that comes again is skipped. For saved results
    /// that are continued later. Default: no, because a source removes copies itself.
    pub chunks_once: bool,
}

impl Default for TraceSettings {
    fn default() -> Self {
        Self {
            max_duration: Duration::from_secs(600),
            max_waiting: 4_000_000,
            repair: false,
            only: None,
            chunks_once: false,
        }
    }
}

/// A trace that gets no more records, and the verdict on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClosedTrace {
    /// The trace. If it is not valid, its calls are the recorded ones.
    pub trace: Trace,
    /// The verdict.
    pub outcome: Outcome,
}

/// Assembles traces from records in any order.
#[derive(Debug, Default)]
pub struct Assembler {
    settings: TraceSettings,
    pub(super) operations: Operations,
    pub(super) sessions: Texts,
    pub(super) open: HashMap<i64, OpenTrace>,
    /// Records in `open`, plus the overhead of the traces.
    waiting: usize,
    pub(super) closed: ClosedIds,
    pub(super) counts: TraceCounts,
    /// The newest time of a record, and its value at the last check for old traces.
    pub(super) newest: i64,
    looked_at: i64,
    /// The records that waited after the last check for room. The next check comes when an eighth
    /// more wait, because looking at every trace is expensive.
    waiting_at_look: usize,
    /// Counts parcels.
    round: u64,
}

/// A trace that may get more records.
#[derive(Debug)]
pub(super) struct OpenTrace {
    pub(super) calls: Vec<Call>,
    pub(super) events: Vec<Event>,
    pub(super) spans: Vec<Span>,
    pub(super) metadata: Option<Metadata>,
    pub(super) session: Option<TextId>,
    first: i64,
    last: i64,
    /// The round of its newest record.
    round: u64,
    /// Its share of the records that may wait.
    pub(super) cost: usize,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Metadata {
    pub(super) host: TextId,
    pub(super) parent: Option<(i64, i32)>,
}

/// The ids of traces that were closed while more records could come.
#[derive(Debug, Default)]
pub(super) struct ClosedIds {
    /// For each id, whether a record of it came late.
    ids: HashMap<i64, bool>,
    order: VecDeque<i64>,
}

/// Why traces are closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cause {
    Age,
    End,
    Memory,
}

/// Receives closed traces.
type Each<'a> = dyn FnMut(ClosedTrace, &Operations) + 'a;

impl Assembler {
    /// Creates an assembler without records.
    pub fn new(settings: TraceSettings) -> Self {
        Self {
            settings,
            ..Self::default()
        }
    }

    /// Returns the operations to which the numbers in traces refer.
    pub fn operations(&self) -> &Operations {
        &self.operations
    }

    /// Returns the counts of records; the [`super::Profile`] counts traces.
    pub fn counts(&self) -> &TraceCounts {
        &self.counts
    }

    /// Takes the records of a parcel, and passes every trace that they close to `each`.
    pub fn accept(&mut self, parcel: &Parcel, each: &mut Each<'_>) {
        // Only records that come need room. So nothing is closed early after the last ones.
        self.make_room(each);
        let batch = &parcel.chunk().batch;
        let mut texts = TextCache::new(batch);
        let selection = parcel.selection();
        let selected = selection.map(|_| rows_by_table(batch, selection));
        self.round += 1;
        for (position, table) in batch.tables().iter().enumerate() {
            match &selected {
                None => self.read(table, 0..table.len(), &mut texts),
                Some(selected) => {
                    let rows = selected[position].iter().map(|(row, _)| *row as usize);
                    self.read(table, rows, &mut texts);
                }
            }
        }
        self.read_spans(parcel);
        // Checking every trace is expensive, so old ones are closed up to an eighth too late.
        let (max, newest) = (self.settings.max_duration.as_nanos(), self.newest);
        if u128::from(nanos_between(self.looked_at, newest)) > max / 8 {
            self.looked_at = newest;
            let is_old = |it: &OpenTrace| u128::from(nanos_between(it.first, newest)) > max;
            self.close_some(is_old, Cause::Age, each);
        }
    }

    /// Closes traces if too many records wait: those that are complete, and if that is not enough,
    /// those that have been idle longest.
    fn make_room(&mut self, each: &mut Each<'_>) {
        let max = self.settings.max_waiting;
        if self.waiting <= max.max(self.waiting_at_look + max / 8) {
            return;
        }
        // More calls of a trace may follow if the last parcel had some.
        let round = self.round;
        self.close_some(
            |it| it.round < round && it.is_complete(),
            Cause::Memory,
            each,
        );
        let incomplete = || self.open.values().filter(|trace| !trace.is_complete());
        if incomplete().map(|trace| trace.cost).sum::<usize>() > max {
            let mut rounds: Vec<u64> = incomplete().map(|trace| trace.round).collect();
            rounds.sort_unstable();
            let limit = rounds[rounds.len() / 4];
            let is_idle = |it: &OpenTrace| it.round <= limit && !it.is_complete();
            self.close_some(is_idle, Cause::Memory, each);
        }
        self.waiting_at_look = self.waiting;
    }

    /// Closes every trace. Callers come before the traces that they called.
    pub fn finish(&mut self, each: &mut Each<'_>) {
        self.close_some(|_| true, Cause::End, each);
        self.open.shrink_to_fit();
    }

    fn close_some(
        &mut self,
        closes: impl Fn(&OpenTrace) -> bool,
        cause: Cause,
        each: &mut Each<'_>,
    ) {
        let closing = self.open.iter().filter(|(_, trace)| closes(trace));
        let mut closing: Vec<_> = closing.map(|(id, trace)| (trace.first, *id)).collect();
        closing.sort_unstable();
        for (_, id) in closing {
            let trace = self.open.remove(&id).expect("it was just found there");
            self.waiting -= trace.cost;
            if cause != Cause::End {
                self.closed.add(id, false);
            }
            let closed = self.conclude(id, trace, cause);
            each(closed, &self.operations);
        }
    }

    /// Judges a trace.
    fn conclude(&mut self, id: i64, open: OpenTrace, cause: Cause) -> ClosedTrace {
        let OpenTrace {
            calls,
            mut events,
            mut spans,
            ..
        } = open;
        let kinds = [calls.is_empty(), events.is_empty(), spans.is_empty()];
        let is_mixed = kinds.iter().filter(|is_empty| !**is_empty).count() > 1;
        let mut trace = Trace {
            id,
            parent: open.metadata.and_then(|metadata| metadata.parent),
            session: open.session.map(|text| self.sessions.get(text).into()),
            calls,
            event_calls: Vec::new(),
        };
        let span = u128::from(nanos_between(open.first, open.last));
        let is_long = span > self.settings.max_duration.as_nanos();
        let outcome = if is_long {
            Outcome::Invalid(Reason::MaxDuration)
        } else if is_mixed {
            Outcome::Invalid(Reason::MixedKinds)
        } else if !spans.is_empty() {
            self.counts.copies += sort_without_copies(&mut spans);
            match spans::calls(&spans) {
                Ok((calls, without_parent)) => {
                    trace.calls = calls;
                    self.counts.spans_without_parent += without_parent;
                    Outcome::Valid
                }
                Err(reason) => Outcome::Invalid(reason),
            }
        } else if events.is_empty() {
            let (copies, checked) = trace.check();
            self.counts.copies += copies;
            match checked {
                Ok(()) => Outcome::Valid,
                Err(Reason::NoCalls) => Outcome::Incomplete(Reason::NoCalls),
                Err(reason) => Outcome::Invalid(reason),
            }
        } else if let Some(metadata) = open.metadata {
            self.counts.copies += sort_without_copies(&mut events);
            let operations = &mut self.operations;
            let host = metadata.host;
            let made = EventCalls::of(&events, self.settings.repair, |kind| {
                operations.id(host, kind)
            });
            match made {
                Ok(made) => {
                    trace.calls = made.calls;
                    trace.event_calls = made.event_calls;
                    match (made.added, trace.calls.is_empty()) {
                        (_, true) => Outcome::Incomplete(Reason::NoCalls),
                        (0, _) => Outcome::Valid,
                        _ => Outcome::Repaired,
                    }
                }
                Err(reason @ (Reason::AfterMissing | Reason::EventMissing)) => {
                    Outcome::Incomplete(reason)
                }
                Err(reason) => Outcome::Invalid(reason),
            }
        } else {
            Outcome::Incomplete(Reason::MetadataMissing)
        };
        let open_ended = match outcome {
            Outcome::Incomplete(_) => true,
            Outcome::Invalid(reason) => {
                matches!(reason, Reason::FirstNotRoot | Reason::OrderGap)
            }
            _ => false,
        };
        let outcome = match outcome.is_valid() {
            // Further records could have made it valid.
            false if cause == Cause::Memory && open_ended => Outcome::Incomplete(Reason::Evicted),
            _ => outcome,
        };
        ClosedTrace { trace, outcome }
    }

    /// Reads the rows of a table, if its records belong to traces.
    fn read(
        &mut self,
        table: &Table,
        rows: impl Iterator<Item = usize>,
        texts: &mut TextCache<'_>,
    ) {
        let integers = |name| table.column(name).and_then(Column::signed);
        let strings = |name| table.column(name).and_then(Column::string_ids);
        let Some(ids) = integers("traceId") else {
            return;
        };
        if let (Some(signatures), Some(tins), Some(touts), Some(eois), Some(esss)) = (
            strings("operationSignature"),
            integers("tin"),
            integers("tout"),
            integers("eoi"),
            integers("ess"),
        ) {
            let (hosts, sessions) = (strings("hostname"), strings("sessionId"));
            for row in rows {
                let id = ids[row];
                let [eoi, ess] = [eois, esss].map(|it| i32::try_from(it[row]).unwrap_or(-1));
                let host = hosts.map(|hosts| hosts[row]);
                let (operation, asynchronous) =
                    texts.operation(host, signatures[row], &mut self.operations);
                let call = Call {
                    eoi,
                    ess,
                    tin: tins[row],
                    tout: touts[row],
                    operation,
                    failed: false,
                    asynchronous,
                };
                if id == -1 || eoi < 0 || ess < 0 {
                    self.counts.untraced += 1;
                    continue;
                }
                let session = texts.session(sessions, row, &mut self.sessions);
                let Some(trace) = self.trace(id, call.tin, call.tout) else {
                    continue;
                };
                trace.calls.push(call);
                trace.session = trace.session.or(session);
            }
        } else if let (Some(parents), Some(positions), Some(hosts)) = (
            integers("parentTraceId"),
            integers("parentOrderId"),
            strings("hostname"),
        ) {
            let sessions = strings("sessionId");
            for row in rows {
                let (id, parent) = (ids[row], parents[row]);
                let host = texts.text(Some(hosts[row]), &mut self.operations);
                let session = texts.session(sessions, row, &mut self.sessions);
                let position = i32::try_from(positions[row]).ok();
                let has_parent = parent != id && parent != -1;
                // The time of this record is not the time of a call.
                let Some(trace) = self.trace(id, i64::MAX, i64::MIN) else {
                    continue;
                };
                trace.metadata = Some(Metadata {
                    host,
                    parent: position.filter(|_| has_parent).map(|it| (parent, it)),
                });
                trace.session = trace.session.or(session);
            }
        } else if let (Some(orders), Some(times)) = (integers("orderIndex"), integers("timestamp"))
        {
            let (signatures, classes) = (strings("operationSignature"), strings("classSignature"));
            let type_name = table.schema().name();
            let short = type_name.rsplit(['.', ':']).next().unwrap_or(type_name);
            let kind = match signatures {
                Some(_) if short.starts_with("Before") => EventKind::Before,
                Some(_) if short.starts_with("After") && short.contains("Failed") => {
                    EventKind::AfterFailed
                }
                Some(_) if short.starts_with("After") => EventKind::After,
                _ => EventKind::Other,
            };
            for row in rows {
                let (id, time) = (ids[row], times[row]);
                let class = classes.map(|it| it[row]);
                let signature = signatures.map(|it| it[row]);
                let event = Event {
                    order: i32::try_from(orders[row]).unwrap_or(-1),
                    kind,
                    time,
                    operation: texts.kind(class, signature, &mut self.operations),
                };
                if let Some(trace) = self.trace(id, time, time) {
                    trace.events.push(event);
                }
            }
        }
    }

    /// Reads the spans of a parcel.
    fn read_spans(&mut self, parcel: &Parcel) {
        let name = SpanRecord::schema().name();
        let mut tables = parcel.chunk().batch.tables().iter();
        if !tables.any(|table| table.schema().name() == name) {
            return;
        }
        for record in parcel.read::<SpanRecord>() {
            let read = record
                .ok()
                .and_then(|it| it.times().map(|times| (it, times)));
            let Some((record, [start, end])) = read else {
                self.counts.untraced += 1;
                continue;
            };
            let operations = &mut self.operations;
            let host = operations.text(record.host());
            let signature = operations.text(&record.signature());
            let kind = operations.kind(None, signature);
            let span = Span {
                start,
                id: record.span_id,
                parent: record.parent_span_id,
                end,
                operation: operations.id(host, kind),
                failed: record.has_failed(),
            };
            let session = record.session().map(|session| self.sessions.id(session));
            if let Some(trace) = self.trace(record.trace(), start, end) {
                trace.spans.push(span);
                trace.session = trace.session.or(session);
            }
        }
    }

    /// Returns the open trace of a record with this span of time. `None` if the trace is not
    /// wanted, or the record is late.
    pub(super) fn trace(&mut self, id: i64, first: i64, last: i64) -> Option<&mut OpenTrace> {
        let only = self.settings.only.as_ref();
        if only.is_some_and(|only| !only.contains(&id)) {
            return None;
        }
        self.counts.records += 1;
        self.newest = self.newest.max(last);
        let trace = match self.open.entry(id) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => {
                if let Some(is_late) = self.closed.ids.get_mut(&id) {
                    self.counts.late += u64::from(!std::mem::replace(is_late, true));
                    self.counts.late_records += 1;
                    return None;
                }
                self.waiting += TRACE_OVERHEAD;
                entry.insert(OpenTrace::default())
            }
        };
        self.waiting += 1;
        trace.cost += 1;
        trace.first = trace.first.min(first);
        trace.last = trace.last.max(last);
        trace.round = self.round;
        Some(trace)
    }
}

impl OpenTrace {
    /// Whether no record seems to be missing. Copies can make up for a missing one.
    fn is_complete(&self) -> bool {
        let are_all = |numbers: &mut dyn Iterator<Item = i32>, count: usize| {
            let last = numbers.max().and_then(|last| usize::try_from(last).ok());
            last.is_some_and(|last| last < count)
        };
        if !self.spans.is_empty() {
            return spans::are_whole(&self.spans);
        }
        if self.events.is_empty() {
            return self.calls.iter().any(|call| call.eoi == 0 && call.ess == 0)
                && are_all(
                    &mut self.calls.iter().map(|call| call.eoi),
                    self.calls.len(),
                );
        }
        let count = |begins: bool| {
            let events = self.events.iter().filter(|event| match event.kind {
                EventKind::Before => begins,
                EventKind::After | EventKind::AfterFailed => !begins,
                EventKind::Other => false,
            });
            events.count()
        };
        self.metadata.is_some()
            && count(true) == count(false)
            && are_all(
                &mut self.events.iter().map(|event| event.order),
                self.events.len(),
            )
    }
}

impl Default for OpenTrace {
    fn default() -> Self {
        Self {
            calls: Vec::new(),
            events: Vec::new(),
            spans: Vec::new(),
            metadata: None,
            session: None,
            first: i64::MAX,
            last: i64::MIN,
            round: 0,
            cost: TRACE_OVERHEAD,
        }
    }
}

impl ClosedIds {
    /// Returns the ids in the order in which the traces were closed.
    pub(super) fn iter(&self) -> impl Iterator<Item = (i64, bool)> {
        self.order.iter().map(|id| (*id, self.ids[id]))
    }

    /// Adds the id of a trace, and whether a record of it came late.
    pub(super) fn add(&mut self, id: i64, is_late: bool) {
        if self.order.len() >= REMEMBERED {
            if let Some(oldest) = self.order.pop_front() {
                self.ids.remove(&oldest);
            }
        }
        if self.ids.insert(id, is_late).is_none() {
            self.order.push_back(id);
        }
    }
}

/// What a signature is with this host or class.
type With<T> = (Option<u32>, T);

/// Maps the strings of one chunk to their numbers in [`Operations`].
struct TextCache<'a> {
    strings: Vec<&'a str>,
    texts: Vec<Option<TextId>>,
    /// By signature: the host or the class with which it came last, and the operation of both.
    calls: Vec<Option<With<(OperationId, bool)>>>,
    kinds: Vec<Option<With<KindId>>>,
    /// Strings that name no session are known, too.
    sessions: Vec<Option<Option<TextId>>>,
}

impl<'a> TextCache<'a> {
    fn new(batch: &'a RecordBatch) -> Self {
        let strings: Vec<_> = batch.strings().iter().collect();
        Self {
            texts: vec![None; strings.len()],
            calls: vec![None; strings.len()],
            kinds: vec![None; strings.len()],
            sessions: vec![None; strings.len()],
            strings,
        }
    }

    /// Returns the number of a string; without one, of the empty text.
    fn text(&mut self, string: Option<u32>, operations: &mut Operations) -> TextId {
        let Some(string) = string else {
            return operations.text("");
        };
        let position = string as usize;
        let text = self.strings[position];
        *self.texts[position].get_or_insert_with(|| operations.text(text))
    }

    fn session(
        &mut self,
        strings: Option<&[u32]>,
        row: usize,
        sessions: &mut Texts,
    ) -> Option<TextId> {
        let position = strings?[row] as usize;
        let text = self.strings[position];
        *self.sessions[position].get_or_insert_with(|| {
            // The header of a trace from another process names that process's call, and no session.
            let is_none =
                text == NO_SESSION || text.is_empty() || w3c::recorded_parent(text).is_some();
            (!is_none).then(|| sessions.id(text))
        })
    }

    /// Returns the operation of an execution, and whether its signature has the mark of asynchronous
    /// calls.
    fn operation(
        &mut self,
        host: Option<u32>,
        signature: u32,
        operations: &mut Operations,
    ) -> (OperationId, bool) {
        let position = signature as usize;
        if let Some((_, known)) = self.calls[position].filter(|(with, _)| *with == host) {
            return known;
        }
        let (signature, asynchronous) = without_async(self.strings[position]);
        let text = operations.text(signature);
        let kind = operations.kind(None, text);
        let text = self.text(host, operations);
        let operation = (operations.id(text, kind), asynchronous);
        self.calls[position] = Some((host, operation));
        operation
    }

    /// Returns the operation of an event.
    fn kind(
        &mut self,
        class: Option<u32>,
        signature: Option<u32>,
        operations: &mut Operations,
    ) -> KindId {
        let known = signature.and_then(|it| self.kinds[it as usize]);
        if let Some((_, known)) = known.filter(|(with, _)| *with == class) {
            return known;
        }
        let named = class.map(|class| self.text(Some(class), operations));
        let text = self.text(signature, operations);
        let kind = operations.kind(named, text);
        if let Some(signature) = signature {
            self.kinds[signature as usize] = Some((class, kind));
        }
        kind
    }
}

#[cfg(test)]
mod tests;
