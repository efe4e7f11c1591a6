//! The call tree of one trace, from records of the executions in it.
//!
//! Each execution has its place: `eoi`, its number in the order of entries, and `ess`, its depth
//! (van Hoorn et al., "Kieker: A Framework for Application Performance Monitoring and Dynamic
//! Software Analysis", section 2; Kieker's `TraceReconstructionFilter`).
//! Records come in order of ends and from several chunks; a tree is built only from a whole and
//! consistent trace.

use baler_common::record::{RecordRef, ValueRef};

/// One execution of an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Execution {
    /// The operation with its parameters.
    pub operation: Box<str>,
    /// The trace that it is part of.
    pub trace_id: i64,
    /// Entered at, in nanoseconds since the Unix epoch.
    pub tin: i64,
    /// Ended at, in nanoseconds since the Unix epoch.
    pub tout: i64,
    /// Its number in the order of entries, from 0.
    pub eoi: i32,
    /// How deep it is nested, from 0.
    pub ess: i32,
}

impl Execution {
    /// Reads an execution from any record with the fields of Kieker's
    /// `OperationExecutionRecord`. `None` for others, and for executions outside of traces.
    pub fn from_record(record: RecordRef<'_>) -> Option<Self> {
        let integer = |name| match record.field(name) {
            Some(ValueRef::Signed(value)) => Some(value),
            _ => None,
        };
        let place = |name| i32::try_from(integer(name)?).ok().filter(|it| *it >= 0);
        let Some(ValueRef::String(operation)) = record.field("operationSignature") else {
            return None;
        };
        Some(Self {
            operation: operation.into(),
            trace_id: integer("traceId").filter(|id| *id != -1)?,
            tin: integer("tin")?,
            tout: integer("tout")?,
            eoi: place("eoi")?,
            ess: place("ess")?,
        })
    }

    /// How long it took, in nanoseconds.
    pub fn nanos(&self) -> i64 {
        self.tout.saturating_sub(self.tin)
    }
}

/// The executions of one whole trace: who called whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallTree {
    executions: Vec<Execution>,
}

/// Executions are no whole and consistent trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("trace {trace_id}: the execution with eoi {eoi} {problem}")]
#[non_exhaustive]
pub struct TraceError {
    /// The trace; -1 if there is no execution at all.
    pub trace_id: i64,
    /// The number of the first execution that does not fit.
    pub eoi: i32,
    /// Why it does not fit.
    pub problem: TraceProblem,
}

/// Why an execution does not fit its trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TraceProblem {
    /// It is nested deeper than its caller allows, or is a second root.
    #[error("cannot be at depth {ess}")]
    Depth {
        /// Its depth.
        ess: i32,
    },
    /// There are two with this number.
    #[error("is there twice")]
    Duplicate,
    /// There is none with this number.
    #[error("is missing")]
    Missing,
    /// It belongs to another trace.
    #[error("belongs to another trace")]
    OtherTrace,
    /// It is not within the time of its caller, or ends before it begins.
    #[error("is not within its caller's time")]
    Time,
}

impl CallTree {
    /// Builds the tree from all executions of one trace, in any order.
    ///
    /// # Errors
    ///
    /// A [`TraceError`] that names the first execution that does not fit.
    pub fn of(mut executions: Vec<Execution>) -> Result<Self, TraceError> {
        executions.sort_by_key(|execution| execution.eoi);
        let trace_id = executions.first().map_or(-1, |root| root.trace_id);
        let error = |eoi, problem| {
            Err(TraceError {
                trace_id,
                eoi,
                problem,
            })
        };
        if executions.is_empty() {
            return error(0, TraceProblem::Missing);
        }
        // Begin and end of the calls that are open when an execution is entered, by depth.
        let mut open: Vec<(i64, i64)> = Vec::new();
        for (expected, execution) in (0_i32..).zip(&executions) {
            let Execution {
                tin,
                tout,
                eoi,
                ess,
                ..
            } = *execution;
            if execution.trace_id != trace_id {
                return error(eoi, TraceProblem::OtherTrace);
            }
            if eoi < expected {
                return error(eoi, TraceProblem::Duplicate);
            }
            if eoi > expected {
                return error(expected, TraceProblem::Missing);
            }
            let depth = usize::try_from(ess).unwrap_or(usize::MAX);
            if depth > open.len() || (depth > 0) != (eoi > 0) {
                return error(eoi, TraceProblem::Depth { ess });
            }
            open.truncate(depth);
            let (from, to) = open.last().copied().unwrap_or((tin, i64::MAX));
            if tin < from || tout > to || tout < tin {
                return error(eoi, TraceProblem::Time);
            }
            open.push((tin, tout));
        }
        Ok(Self { executions })
    }

    /// The trace.
    pub fn trace_id(&self) -> i64 {
        self.executions.first().map_or(-1, |root| root.trace_id)
    }

    /// The executions in order of entry: each one directly after its caller or after the calls of
    /// an earlier sibling, indented by `ess` they are the tree.
    pub fn executions(&self) -> &[Execution] {
        &self.executions
    }

    /// The time that an execution spent itself, its calls left out, in nanoseconds.
    pub fn self_nanos(&self, position: usize) -> Option<i64> {
        let execution = self.executions.get(position)?;
        let below = self.executions.iter().skip(position.saturating_add(1));
        let calls = below
            .take_while(|other| other.ess > execution.ess)
            .filter(|other| other.ess == execution.ess.saturating_add(1));
        Some(calls.fold(execution.nanos(), |left, call| {
            left.saturating_sub(call.nanos())
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn execution(eoi: i32, ess: i32, tin: i64, tout: i64) -> Execution {
        Execution {
            operation: format!("op{eoi}").into(),
            trace_id: 7,
            tin,
            tout,
            eoi,
            ess,
        }
    }

    /// 0 calls 1 and 3, 1 calls 2.
    fn whole() -> Vec<Execution> {
        vec![
            execution(2, 2, 20, 30),
            execution(1, 1, 10, 40),
            execution(3, 1, 50, 60),
            execution(0, 0, 0, 100),
        ]
    }

    #[test]
    fn a_whole_trace_becomes_a_tree() {
        let tree = CallTree::of(whole()).unwrap();
        let depths: Vec<_> = tree.executions().iter().map(|it| it.ess).collect();
        assert_eq!(depths, [0, 1, 2, 1]);
        assert_eq!(tree.trace_id(), 7);
        let own: Vec<_> = (0..4).map(|it| tree.self_nanos(it).unwrap()).collect();
        assert_eq!(own, [60, 20, 10, 10]);
    }

    #[test]
    fn what_does_not_fit_is_named() {
        use TraceProblem::{Depth, Duplicate, Missing, OtherTrace, Time};
        let named = |executions| {
            let error = CallTree::of(executions).unwrap_err();
            (error.trace_id, error.eoi, error.problem)
        };
        let changed = |position: usize, execution: Execution| {
            let mut executions = whole();
            executions[position] = execution;
            named(executions)
        };
        let mut missing = whole();
        missing.remove(1);
        assert_eq!(named(missing), (7, 1, Missing));
        assert_eq!(named(Vec::new()), (-1, 0, Missing));
        assert_eq!(changed(2, execution(2, 1, 50, 60)), (7, 2, Duplicate));
        for ess in [4, 0] {
            assert_eq!(changed(2, execution(3, ess, 50, 60)), (7, 3, Depth { ess }));
        }
        assert_eq!(changed(0, execution(2, 2, 5, 30)), (7, 2, Time));
        let mut other = execution(3, 1, 50, 60);
        other.trace_id = 8;
        assert_eq!(changed(2, other), (7, 3, OtherTrace));
    }
}
