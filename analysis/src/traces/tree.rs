//! One trace: its calls, and whether they fit together.

use serde::{Deserialize, Serialize};

use super::operations::OperationId;

/// One call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "CallRow", into = "CallRow")]
pub struct Call {
    /// Its number in the order of entries, from 0.
    pub eoi: i32,
    /// Its depth of nesting, from 0.
    pub ess: i32,
    /// Entered at, in nanoseconds since the Unix epoch.
    pub tin: i64,
    /// Ended at, in nanoseconds since the Unix epoch.
    pub tout: i64,
    /// The called operation.
    pub operation: OperationId,
    /// Whether it ended with an error; only events and spans contain this.
    pub failed: bool,
    /// Whether its caller did not wait for it: it does not lie within its caller's time, or overlaps
    /// another call of the same caller. Only spans, and executions made of them, contain this.
    pub asynchronous: bool,
}

/// A call in the form of saved results: eoi, ess, tin, tout, operation, flags.
type CallRow = (i32, i32, i64, i64, OperationId, Flags);

/// `failed`, as in files of earlier versions; for an asynchronous call `[failed, true]`.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Flags {
    Failed(bool),
    Both([bool; 2]),
}

impl From<CallRow> for Call {
    fn from((eoi, ess, tin, tout, operation, flags): CallRow) -> Self {
        let [failed, asynchronous] = match flags {
            Flags::Failed(failed) => [failed, false],
            Flags::Both(both) => both,
        };
        Self {
            eoi,
            ess,
            tin,
            tout,
            operation,
            failed,
            asynchronous,
        }
    }
}

impl From<Call> for CallRow {
    fn from(call: Call) -> Self {
        let Call {
            eoi,
            ess,
            tin,
            tout,
            operation,
            failed,
            asynchronous,
        } = call;
        let flags = match asynchronous {
            true => Flags::Both([failed, true]),
            false => Flags::Failed(failed),
        };
        (eoi, ess, tin, tout, operation, flags)
    }
}

impl Call {
    /// Returns its duration in nanoseconds; 0 if it ended before it began.
    pub fn nanos(&self) -> u64 {
        nanos_between(self.tin, self.tout)
    }

    /// Returns its depth; that of a call of a valid trace is not negative.
    pub(super) fn depth(&self) -> usize {
        usize::try_from(self.ess).expect("the trace is valid")
    }
}

/// Returns the nanoseconds between two points in time from outside; 0 if the first one is later.
pub(super) fn nanos_between(first: i64, last: i64) -> u64 {
    match first < last {
        true => last.abs_diff(first),
        false => 0,
    }
}

/// Sorts records, drops copies, and returns the number of copies.
pub(super) fn sort_without_copies<T: Ord>(records: &mut Vec<T>) -> u64 {
    let before = records.len();
    records.sort_unstable();
    records.dedup();
    (before - records.len()) as u64
}

/// Returns the span from the first beginning to the last end.
pub(super) fn widen(span: Option<(i64, i64)>, other: (i64, i64)) -> (i64, i64) {
    span.map_or(other, |span| (span.0.min(other.0), span.1.max(other.1)))
}

/// The calls of one trace, in order of entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trace {
    /// Its id.
    pub id: i64,
    /// The trace and the place in it from which this one was called in another process or thread:
    /// the `eoi` of a call, or the `orderIndex` of an event. The place is -1 if it is not known.
    pub parent: Option<(i64, i32)>,
    /// The session, if there is one.
    pub session: Option<Box<str>>,
    /// The calls. In a valid trace, each one comes after its caller and the calls of earlier
    /// siblings.
    pub calls: Vec<Call>,
    /// For each event of a trace made of events, the position of the call that was open after it.
    pub(super) event_calls: Vec<u32>,
}

/// The verdict on a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Records are missing that could still have come, or were necessary.
    Incomplete(Reason),
    /// Its records contradict each other.
    Invalid(Reason),
    /// Valid after missing ends of calls were added.
    Repaired,
    /// Complete and consistent.
    Valid,
}

impl Outcome {
    /// Whether the calls are a tree.
    pub fn is_valid(self) -> bool {
        matches!(self, Self::Valid | Self::Repaired)
    }
}

/// Why a trace is not valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Reason {
    /// A call ends although it is not the innermost open one.
    AfterMismatch,
    /// The end of a call is missing.
    AfterMissing,
    /// A call is more than one level deeper than the one before.
    DepthJump,
    /// A number in the order of events is missing.
    EventMissing,
    /// It was closed early because too many records waited, and further ones could have made it
    /// valid.
    Evicted,
    /// The first call is not at depth 0.
    FirstNotRoot,
    /// It lasts longer than the maximum duration.
    MaxDuration,
    /// Events lack the record of their trace, which contains host and session.
    MetadataMissing,
    /// It has records of several kinds: executions, events, spans.
    MixedKinds,
    /// It has only the record of the trace.
    NoCalls,
    /// The numbers in the order of entries do not rise by one from 0.
    OrderGap,
    /// Two different records have the same number, or spans the same id.
    OrderRepeated,
    /// The parents of spans form a cycle.
    ParentCycle,
}

impl Reason {
    /// Its name in documents.
    pub fn name(self) -> &'static str {
        match self {
            Self::AfterMismatch => "after_mismatch",
            Self::AfterMissing => "after_missing",
            Self::DepthJump => "depth_jump",
            Self::EventMissing => "event_missing",
            Self::Evicted => "evicted",
            Self::FirstNotRoot => "first_not_root",
            Self::MaxDuration => "max_duration",
            Self::MetadataMissing => "metadata_missing",
            Self::MixedKinds => "mixed_kinds",
            Self::NoCalls => "no_calls",
            Self::OrderGap => "order_gap",
            Self::OrderRepeated => "order_repeated",
            Self::ParentCycle => "parent_cycle",
        }
    }
}

impl Trace {
    /// Returns the start of its first call, in nanoseconds since the Unix epoch; 0 without calls.
    pub fn start(&self) -> i64 {
        self.span().0
    }

    /// Returns the time from the first start to the last end, in nanoseconds; 0 without calls.
    pub fn nanos(&self) -> u64 {
        let (start, end) = self.span();
        nanos_between(start, end)
    }

    /// Returns the first start and the last end of its calls.
    pub(super) fn span(&self) -> (i64, i64) {
        let spans = self.calls.iter().map(|call| (call.tin, call.tout));
        let all = spans.fold(None, |all, span| Some(widen(all, span)));
        all.unwrap_or((0, 0))
    }

    /// Returns the number of asynchronous calls.
    pub fn asynchronous(&self) -> usize {
        let calls = self.calls.iter();
        calls.filter(|call| call.asynchronous).count()
    }

    /// Returns the depth of its deepest call, from 0.
    pub fn max_depth(&self) -> i32 {
        let depths = self.calls.iter().map(|call| call.ess);
        depths.fold(0, i32::max)
    }

    /// Returns the position of the caller and the own time in nanoseconds, for each call of a valid
    /// trace.
    ///
    /// # Panics
    ///
    /// A call has a negative depth, so the trace is not valid.
    pub fn callers(&self) -> Vec<(Option<usize>, u64)> {
        let mut open: Vec<usize> = Vec::new();
        let mut callers: Vec<(Option<usize>, u64)> = Vec::with_capacity(self.calls.len());
        for (position, call) in self.calls.iter().enumerate() {
            open.truncate(call.depth());
            let caller = open.last().copied();
            if let Some(caller) = caller {
                // Called ones that overlap can take longer than their caller.
                let own = &mut callers[caller].1;
                *own = own.saturating_sub(call.nanos());
            }
            callers.push((caller, call.nanos()));
            open.push(position);
        }
        callers
    }

    /// Sorts executions, drops copies, and checks them by Kieker's rules
    /// (`ExecutionTrace.toMessageTrace`). Returns the number of copies, and the first problem.
    pub(super) fn check(&mut self) -> (u64, Result<(), Reason>) {
        let copies = sort_without_copies(&mut self.calls);
        (copies, self.check_sorted())
    }

    /// Checks calls that are sorted and without copies. Their numbers come from outside.
    pub(super) fn check_sorted(&self) -> Result<(), Reason> {
        let first = self.calls.first().ok_or(Reason::NoCalls)?;
        if first.ess != 0 {
            return Err(Reason::FirstNotRoot);
        }
        // A call is at most one level deeper than the one before, so neither number exceeds the
        // number of calls.
        let (mut next_number, mut max_depth) = (0, 0);
        for call in &self.calls {
            if call.eoi == next_number - 1 {
                return Err(Reason::OrderRepeated);
            }
            if call.eoi != next_number {
                return Err(Reason::OrderGap);
            }
            if !(0..=max_depth).contains(&call.ess) {
                return Err(Reason::DepthJump);
            }
            (next_number, max_depth) = (call.eoi + 1, call.ess + 1);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
