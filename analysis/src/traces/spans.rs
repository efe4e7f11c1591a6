//! Spans of OpenTelemetry: their operations by Kieker's names, and the calls of one trace.

use std::collections::BTreeMap;

use baler_common::record::{AnyValue, Record};
use foldhash::{HashMap, HashSet};
use serde::{Deserialize, Serialize};

use super::operations::{OperationId, without_async};
use super::tree::{Call, Reason};

/// `STATUS_CODE_ERROR`.
const ERROR: i32 = 2;

/// The fields of `otel.Span` (`connectors/otlp`) that make a call.
#[derive(Debug, Record)]
#[record(name = "otel.Span")]
pub(super) struct SpanRecord {
    trace_id: TraceId,
    pub(super) span_id: u64,
    /// 0 stands for none.
    pub(super) parent_span_id: u64,
    name: String,
    start_time_unix_nano: u64,
    end_time_unix_nano: u64,
    attributes: BTreeMap<String, AnyValue<'static>>,
    status: Option<Status>,
    resource: Resource,
    scope: Scope,
}

#[derive(Debug, Record)]
struct TraceId {
    low: u64,
}

#[derive(Debug, Record)]
struct Status {
    code: i32,
}

#[derive(Debug, Record)]
struct Resource {
    attributes: BTreeMap<String, AnyValue<'static>>,
}

#[derive(Debug, Record)]
struct Scope {
    name: String,
}

impl SpanRecord {
    /// Returns the number of the trace: the second half of its id, which is the random one if only one
    /// is (W3C Trace Context).
    pub(super) fn trace(&self) -> i64 {
        i64::from_ne_bytes(self.trace_id.low.to_ne_bytes())
    }

    /// Returns start and end, unless one is after the year 2262.
    pub(super) fn times(&self) -> Option<[i64; 2]> {
        let start = i64::try_from(self.start_time_unix_nano).ok()?;
        Some([start, i64::try_from(self.end_time_unix_nano).ok()?])
    }

    pub(super) fn has_failed(&self) -> bool {
        self.status.as_ref().is_some_and(|it| it.code == ERROR)
    }

    pub(super) fn session(&self) -> Option<&str> {
        text(&self.attributes, "session.id")
    }

    pub(super) fn host(&self) -> &str {
        let of = |name| text(&self.resource.attributes, name);
        of("service.name").or_else(|| of("host.name")).unwrap_or("")
    }

    /// Returns the operation as a signature of Kieker.
    pub(super) fn signature(&self) -> String {
        let of = |name| text(&self.attributes, name);
        if let Some(signature) = of("kieker.signature") {
            // The times of the spans show whether the call is asynchronous.
            return without_async(signature).0.to_owned();
        }
        let join = |component: &str, name: &str| match component {
            "" => name.to_owned(),
            _ => format!("{component}.{name}"),
        };
        let path = match (of("code.function.name"), of("code.function")) {
            (Some(name), _) => name.to_owned(),
            (None, Some(name)) => join(of("code.namespace").unwrap_or(""), name),
            (None, None) => join(&self.scope.name, &self.name.replace('.', "_")),
        };
        let separates = |it: char| it.is_whitespace() || matches!(it, '(' | ')' | ',');
        format!("{}()", path.replace(separates, "_"))
    }
}

/// Returns the text of an attribute, unless it is empty.
fn text<'a>(attributes: &'a BTreeMap<String, AnyValue<'_>>, name: &str) -> Option<&'a str> {
    match attributes.get(name)? {
        AnyValue::String(text) if !text.is_empty() => Some(text),
        _ => None,
    }
}

/// One span. Its first fields are the order of siblings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Span {
    /// Nanoseconds since the Unix epoch, as `end`.
    pub(super) start: i64,
    pub(super) id: u64,
    /// 0 stands for none.
    pub(super) parent: u64,
    pub(super) end: i64,
    pub(super) operation: OperationId,
    pub(super) failed: bool,
}

/// Whether there is a root, and every parent.
pub(super) fn are_whole(spans: &[Span]) -> bool {
    let ids: HashSet<u64> = spans.iter().map(|span| span.id).collect();
    let is_placed = |span: &Span| span.parent == 0 || ids.contains(&span.parent);
    spans.iter().any(|span| span.parent == 0) && spans.iter().all(is_placed)
}

/// Makes calls of the spans of one trace, which are sorted and without copies. Returns also the number
/// of spans whose parent is not there; they are roots, too.
pub(super) fn calls(spans: &[Span]) -> Result<(Vec<Call>, u64), Reason> {
    let mut positions = HashMap::default();
    for (position, span) in spans.iter().enumerate() {
        if positions.insert(span.id, position).is_some() {
            return Err(Reason::OrderRepeated);
        }
    }
    // Siblings are linked from the last one to the first one, so that the lists are in order.
    let mut first_root = None;
    let mut first_child = vec![None; spans.len()];
    let mut next_sibling = vec![None; spans.len()];
    let mut without_parent = 0;
    for (position, span) in spans.iter().enumerate().rev() {
        let parent = positions.get(&span.parent).filter(|_| span.parent != 0);
        without_parent += u64::from(parent.is_none() && span.parent != 0);
        let first = match parent {
            Some(parent) => &mut first_child[*parent],
            None => &mut first_root,
        };
        next_sibling[position] = first.replace(position);
    }
    let mut calls = Vec::with_capacity(spans.len());
    // Positions and depths of spans. The next sibling waits until all calls of a span are done.
    let mut next: Vec<(usize, i32)> = first_root.map(|root| (root, 0)).into_iter().collect();
    while let Some((position, ess)) = next.pop() {
        let span = &spans[position];
        calls.push(Call {
            eoi: i32::try_from(calls.len()).expect("a trace has fewer than 2^31 calls"),
            ess,
            tin: span.start,
            tout: span.end,
            operation: span.operation,
            failed: span.failed,
            asynchronous: false,
        });
        next.extend(next_sibling[position].map(|sibling| (sibling, ess)));
        next.extend(first_child[position].map(|child| (child, ess + 1)));
    }
    // No root leads to a cycle.
    if calls.len() < spans.len() {
        return Err(Reason::ParentCycle);
    }
    mark_asynchronous(&mut calls);
    Ok((calls, without_parent))
}

/// Marks each call that does not lie within its caller's time, or overlaps another call of the same
/// caller. Calls of one caller are in order of their starts.
fn mark_asynchronous(calls: &mut [Call]) {
    // By depth: the latest call, and the one with the latest end among it and its siblings so far.
    let mut open: Vec<[usize; 2]> = Vec::new();
    for position in 0..calls.len() {
        let call = calls[position];
        let before = open.get(call.depth()).map(|[_, before]| *before);
        open.truncate(call.depth());
        if let Some([caller, _]) = open.last() {
            let caller = calls[*caller];
            calls[position].asynchronous = call.tin < caller.tin || caller.tout < call.tout;
            // A call that overlaps any sibling so far overlaps the one with the latest end.
            if let Some(before) = before.filter(|before| call.tin < calls[*before].tout) {
                calls[before].asynchronous = true;
                calls[position].asynchronous = true;
            }
        }
        let ends_later = |before: &usize| calls[*before].tout > call.tout;
        open.push([position, before.filter(ends_later).unwrap_or(position)]);
    }
}

#[cfg(test)]
mod tests;
