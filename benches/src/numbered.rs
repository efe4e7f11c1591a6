//! Records that tell each other apart, and which of them have arrived.

use baler_common::record::{Column, RecordBatch};
use baler_rig::workload::{Call, Execution, Executions, Workload};

/// How many different calls there are; they come again and again, with other numbers.
const DIFFERENT: usize = 10_000;

/// Makes records of the workload whose trace ids count up from 0.
#[derive(Debug)]
pub(crate) struct Numbered {
    executions: Executions,
    calls: Vec<Call>,
    next: u64,
}

impl Numbered {
    pub(crate) fn new(seed: u64) -> Self {
        let mut workload = Workload::new(seed);
        let calls = workload.by_ref().take(DIFFERENT).collect();
        Self {
            executions: Executions::new(&workload),
            calls,
            next: 0,
        }
    }

    /// How many there were.
    pub(crate) fn count(&self) -> u64 {
        self.next
    }

    /// The next record, which begins at this time.
    pub(crate) fn next(&mut self, tin: i64) -> &Execution {
        let index = usize::try_from(self.next).unwrap_or(usize::MAX) % DIFFERENT;
        let mut call = match self.calls.get(index) {
            Some(call) => *call,
            None => unreachable_call(),
        };
        call.tout = tin.saturating_add(call.tout - call.tin);
        call.tin = tin;
        call.trace_id = i64::try_from(self.next).unwrap_or(i64::MAX);
        self.next += 1;
        self.executions.of(&call)
    }
}

const fn unreachable_call() -> Call {
    Call {
        operation: 0,
        session: 0,
        host: 0,
        trace_id: 0,
        tin: 0,
        tout: 0,
        eoi: 0,
        ess: 0,
    }
}

/// The numbers in a batch, and when each record began.
pub(crate) fn numbers(batch: &RecordBatch) -> impl Iterator<Item = (i64, i64)> {
    let signed = |column: Option<&Column>| match column {
        Some(Column::Signed(values)) => values.clone(),
        _ => Vec::new(),
    };
    batch.tables().iter().flat_map(move |table| {
        let (ids, tins) = (table.column("traceId"), table.column("tin"));
        signed(ids).into_iter().zip(signed(tins))
    })
}

/// Which numbers have arrived.
#[derive(Debug)]
pub(crate) struct Seen {
    /// A bit for each number that is still missing. All memory is used from the start, so that it
    /// does not look like growth.
    missing: Vec<u64>,
    /// How many different numbers have arrived.
    pub(crate) distinct: u64,
    /// How often a number came that had arrived before.
    pub(crate) repeated: u64,
    /// How many numbers came that cannot be.
    pub(crate) impossible: u64,
}

impl Seen {
    /// For numbers below this one.
    pub(crate) fn new(capacity: u64) -> Self {
        let words = usize::try_from(capacity.div_ceil(64)).unwrap_or(usize::MAX);
        Self {
            missing: vec![u64::MAX; words],
            distinct: 0,
            repeated: 0,
            impossible: 0,
        }
    }

    pub(crate) fn add(&mut self, number: i64) {
        let number = u64::try_from(number).unwrap_or(u64::MAX);
        let index = usize::try_from(number / 64).unwrap_or(usize::MAX);
        let bit = 1_u64 << (number % 64);
        match self.missing.get_mut(index) {
            None => self.impossible += 1,
            Some(word) if *word & bit == 0 => self.repeated += 1,
            Some(word) => {
                *word &= !bit;
                self.distinct += 1;
            }
        }
    }

    /// How many numbers below this one have not arrived.
    pub(crate) fn missing_below(&self, end: u64) -> u64 {
        let mut missing = 0;
        for (index, word) in (0_u64..).zip(&self.missing) {
            let begin = index * 64;
            if begin >= end {
                break;
            }
            let wanted = match end - begin {
                64.. => u64::MAX,
                bits => (1_u64 << bits) - 1,
            };
            missing += u64::from((word & wanted).count_ones());
        }
        missing
    }
}

#[cfg(test)]
mod tests {
    use baler_common::record::BatchBuilder;

    use super::*;

    #[test]
    fn what_is_missing_doubled_or_impossible_shows() {
        let mut seen = Seen::new(200);
        for number in (0..150).filter(|number| *number != 70) {
            seen.add(number);
        }
        assert_eq!((seen.missing_below(150), seen.missing_below(70)), (1, 0));
        assert_eq!(seen.missing_below(152), 3);
        seen.add(70);
        seen.add(70);
        seen.add(-1);
        seen.add(100_000);
        assert_eq!(seen.missing_below(150), 0);
        assert_eq!((seen.distinct, seen.repeated, seen.impossible), (150, 1, 2));
    }

    #[test]
    fn numbers_come_out_of_a_batch_as_they_went_in() {
        let mut numbered = Numbered::new(1);
        let mut builder = BatchBuilder::new();
        for tin in 5..25 {
            builder.push(numbered.next(tin)).unwrap();
        }
        let found: Vec<_> = numbers(&builder.take()).collect();
        let expected: Vec<_> = (0..20).map(|number| (number, number + 5)).collect();
        assert_eq!(found, expected);
        assert_eq!(numbered.count(), 20);
    }
}
