//! How much calls say: what no encoding can be below for long, unless it knows more of them.

use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;

use crate::report::TextTable;
use crate::statistics::to_f64;
use crate::workload::Call;

/// Buckets a duplication of a gap: finer ones would need more calls than there are to be filled.
const BUCKETS_PER_OCTAVE: f64 = 8.0;

/// What one field says a record.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FieldEntropy {
    /// The field's name.
    pub field: &'static str,
    /// What it says given the fields above it, in bits a record.
    pub bits: f64,
    /// How it was estimated.
    pub given: &'static str,
}

/// What each field of operation executions says that its predecessors do not, strings as the
/// numbers that stand for them.
///
/// An estimate from the frequencies of these calls, in a model in which traces are independent of
/// each other and calls nest:
///
/// - a call tree is its sequence of depths in the order of entry, each given the two before it,
///   and the places in that order follow from it;
/// - times are the gaps between one entry or exit of a trace and the next, each given the operation
///   whose own time passes; their distribution is a histogram, an eighth of an octave a bucket,
///   uniform within it;
/// - the order of records between traces follows from their times.
#[derive(Debug, Clone, PartialEq)]
pub struct Entropy {
    /// The fields, in the order of the record.
    pub fields: Vec<FieldEntropy>,
    /// Of how many records.
    pub records: usize,
}

impl Entropy {
    /// The sum of all fields, in bytes a record.
    pub fn bytes_per_record(&self) -> f64 {
        self.fields.iter().map(|field| field.bits).sum::<f64>() / 8.0
    }

    pub(super) fn of(calls: &[Call]) -> Self {
        let mut seen = Seen::default();
        for trace in traces(calls) {
            seen.trace(&trace);
        }
        let records = to_f64(u64::try_from(calls.len()).unwrap_or(u64::MAX)).max(1.0);
        let bits = [
            ("operationSignature", seen.operations.bits(), "frequencies"),
            (
                "sessionId",
                seen.sessions.bits(),
                "frequencies, once a trace",
            ),
            ("traceId", seen.trace_ids.bits(), "the trace before"),
            (
                "tin",
                seen.entries.bits() + seen.starts.bits(),
                "gaps by operation",
            ),
            ("tout", seen.exits.bits(), "gaps by operation"),
            ("hostname", seen.hosts.bits(), "frequencies, once a trace"),
            ("eoi", 0.0, "follows from ess"),
            ("ess", seen.depths.bits(), "the two depths before"),
        ];
        let fields = bits.into_iter().map(|(field, bits, given)| FieldEntropy {
            field,
            bits: bits / records,
            given,
        });
        Self {
            fields: fields.collect(),
            records: calls.len(),
        }
    }
}

/// A table, and the sum.
impl fmt::Display for Entropy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table = TextTable::new(&[("field", true), ("bits/record", false), ("given", true)]);
        for field in &self.fields {
            table.push(vec![
                field.field.to_owned(),
                format!("{:.3}", field.bits),
                field.given.to_owned(),
            ]);
        }
        let bytes = self.bytes_per_record();
        table.push(vec![
            "all".to_owned(),
            format!("{:.3}", bytes * 8.0),
            format!(
                "{bytes:.2} bytes, of {} records, without strings",
                self.records
            ),
        ]);
        f.write_str(&table.render())
    }
}

/// The calls of each trace in order of entry; traces in the order in which they are first seen.
fn traces(calls: &[Call]) -> Vec<Vec<Call>> {
    let mut numbers = HashMap::new();
    let mut traces: Vec<Vec<Call>> = Vec::new();
    for call in calls {
        let number = *numbers.entry(call.trace_id).or_insert(traces.len());
        match traces.get_mut(number) {
            Some(trace) => trace.push(*call),
            None => traces.push(vec![*call]),
        }
    }
    for trace in &mut traces {
        trace.sort_by_key(|call| call.eoi);
    }
    traces
}

/// What was seen so far.
#[derive(Default)]
struct Seen {
    operations: Frequencies<(), usize>,
    sessions: Frequencies<(), usize>,
    hosts: Frequencies<(), usize>,
    trace_ids: Frequencies<(), i64>,
    depths: Frequencies<(i32, i32), i32>,
    starts: Gaps,
    entries: Gaps,
    exits: Gaps,
    before: Option<Call>,
}

impl Seen {
    fn trace(&mut self, trace: &[Call]) {
        let Some(first) = trace.first() else {
            return;
        };
        self.sessions.add((), first.session);
        self.hosts.add((), first.host);
        if let Some(before) = self.before.replace(*first) {
            let step = first.trace_id.wrapping_sub(before.trace_id);
            self.trace_ids.add((), step);
            self.starts
                .add(usize::MAX, first.tin.wrapping_sub(before.tin));
        }
        let mut depths = (-1, -1);
        let mut open: Vec<Call> = Vec::new();
        let mut now = first.tin;
        for call in trace {
            self.operations.add((), call.operation);
            self.depths.add(depths, call.ess);
            depths = (depths.1, call.ess);
            let depth = usize::try_from(call.ess).unwrap_or(0);
            while open.len() > depth {
                self.leave(&mut open, &mut now);
            }
            if let Some(caller) = open.last() {
                self.entries
                    .add(caller.operation, call.tin.wrapping_sub(now));
            }
            now = call.tin;
            open.push(*call);
        }
        while !open.is_empty() {
            self.leave(&mut open, &mut now);
        }
        // That the trace ends here has to be said, too.
        self.depths.add(depths, -1);
    }

    fn leave(&mut self, open: &mut Vec<Call>, now: &mut i64) {
        if let Some(call) = open.pop() {
            self.exits.add(call.operation, call.tout.wrapping_sub(*now));
            *now = call.tout;
        }
    }
}

/// How often each value comes in each context.
struct Frequencies<C, V>(HashMap<C, HashMap<V, u64>>);

impl<C, V> Default for Frequencies<C, V> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<C: Hash + Eq, V: Hash + Eq> Frequencies<C, V> {
    fn add(&mut self, context: C, value: V) {
        *self.0.entry(context).or_default().entry(value).or_default() += 1;
    }

    /// The bits of all values, each given its context.
    fn bits(&self) -> f64 {
        let contexts = self.0.values().map(|values| {
            let total = to_f64(values.values().sum());
            let bits = values.values().map(|count| {
                let count = to_f64(*count);
                count * (total / count).log2()
            });
            bits.sum::<f64>()
        });
        contexts.sum()
    }
}

/// Spans of time by operation, in nanoseconds.
#[derive(Default)]
struct Gaps {
    buckets: Frequencies<usize, (bool, u32)>,
    within: f64,
}

impl Gaps {
    fn add(&mut self, operation: usize, gap: i64) {
        let size = to_f64(gap.unsigned_abs());
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "at most 8 * 64"
        )]
        let bucket = ((size + 1.0).log2() * BUCKETS_PER_OCTAVE) as u32;
        self.buckets.add(operation, (gap < 0, bucket));
        let from = (f64::from(bucket) / BUCKETS_PER_OCTAVE).exp2();
        let to = (f64::from(bucket + 1) / BUCKETS_PER_OCTAVE).exp2();
        // The whole numbers in the bucket.
        let wide = (to.ceil() - from.ceil()).max(1.0);
        self.within += wide.log2();
    }

    fn bits(&self) -> f64 {
        self.buckets.bits() + self.within
    }
}

#[cfg(test)]
mod tests {
    use super::super::Recording;
    use super::*;

    #[test]
    fn values_that_follow_from_others_say_nothing() {
        let mut seen = Frequencies::default();
        for number in 0..100 {
            seen.add(number % 2, number % 2);
        }
        assert_eq!(seen.bits(), 0.0);
        seen.add(0, 1);
        assert!(seen.bits() > 0.0);
    }

    #[test]
    fn evenly_distributed_gaps_take_the_bits_of_their_range() {
        let mut gaps = Gaps::default();
        (1_024..2_048).for_each(|gap| gaps.add(0, gap));
        assert!((gaps.bits() / 1_024.0 - 10.0).abs() < 0.1);
    }

    /// By its parameters: a log-normal gap has `log2(median * sigma * sqrt(2 pi e))` bits, two
    /// gaps a record.
    #[test]
    fn the_workload_has_the_entropy_of_its_description() {
        let entropy = Recording::generated(1, 200_000, 1).entropy();
        let bytes = entropy.bytes_per_record();
        assert!((3.9..4.4).contains(&bytes), "{entropy}");
        let bits: f64 = entropy.fields.iter().map(|field| field.bits).sum();
        assert!((bits / 8.0 - bytes).abs() < 1e-9);
        let operation = entropy.fields[0].bits;
        assert!((5.0..5.5).contains(&operation), "{entropy}");
        assert!(entropy.to_string().contains("bytes, of 200000 records"));
    }
}
