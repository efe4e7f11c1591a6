//! Which records have arrived, and how soon after a restart.

use baler_common::record::{Column, RecordBatch};
use baler_rig::statistics::to_f64;

/// The numbers in a batch, and when each record was emitted.
pub(super) fn numbers(batch: &RecordBatch) -> impl Iterator<Item = (i64, i64)> {
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
pub(super) struct Seen {
    /// A bit for each number that is still missing. All memory is used from the start, so that it
    /// does not look like growth.
    missing: Vec<u64>,
    /// How many different numbers have arrived.
    pub(super) distinct: u64,
    /// How often a number came that had arrived before.
    pub(super) repeated: u64,
    /// How many numbers came that cannot be.
    pub(super) impossible: u64,
}

impl Seen {
    /// For numbers below this one.
    pub(super) fn new(capacity: u64) -> Self {
        let words = usize::try_from(capacity.div_ceil(64)).unwrap_or(usize::MAX);
        Self {
            missing: vec![u64::MAX; words],
            distinct: 0,
            repeated: 0,
            impossible: 0,
        }
    }

    pub(super) fn add(&mut self, number: i64) {
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

    /// How many of `sent` numbers from 0 on have not arrived, given that no others were sent.
    pub(super) fn missing_of(&self, sent: u64) -> u64 {
        sent.saturating_sub(self.distinct)
    }
}

/// How soon chunks arrive after the medium has come back.
#[derive(Debug, Default)]
pub(super) struct Arrivals {
    /// When it came back, until a record arrives that was emitted afterwards.
    returned_ns: Option<i64>,
    has_first: bool,
    pub(super) first_ms: Vec<f64>,
    pub(super) fresh_ms: Vec<f64>,
}

impl Arrivals {
    pub(super) fn await_from(&mut self, returned_ns: i64) {
        self.returned_ns = Some(returned_ns);
        self.has_first = false;
    }

    /// A chunk arrives now whose youngest record was emitted then.
    pub(super) fn add(&mut self, youngest_ns: i64, now_ns: i64) {
        let Some(returned_ns) = self.returned_ns else {
            return;
        };
        let late = u64::try_from(now_ns.saturating_sub(returned_ns)).unwrap_or(0);
        let ms = to_f64(late) / 1e6;
        if !self.has_first {
            self.has_first = true;
            self.first_ms.push(ms);
        }
        if youngest_ns > returned_ns {
            self.fresh_ms.push(ms);
            self.returned_ns = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_doubled_or_impossible_shows() {
        let mut seen = Seen::new(200);
        for number in (0..150).filter(|number| *number != 70) {
            seen.add(number);
        }
        assert_eq!(seen.missing_of(150), 1);
        seen.add(70);
        seen.add(70);
        seen.add(-1);
        seen.add(100_000);
        assert_eq!(seen.missing_of(150), 0);
        assert_eq!((seen.distinct, seen.repeated, seen.impossible), (150, 1, 2));
    }

    #[test]
    fn the_first_chunk_after_a_return_and_the_first_fresh_record_are_timed() {
        let mut arrivals = Arrivals::default();
        arrivals.add(5, 10);
        arrivals.await_from(20_000_000);
        // A chunk from before the outage, then one with a new record, then more.
        arrivals.add(19_000_000, 25_000_000);
        arrivals.add(21_000_000, 27_000_000);
        arrivals.add(22_000_000, 28_000_000);
        assert_eq!(arrivals.first_ms, [5.0]);
        assert_eq!(arrivals.fresh_ms, [7.0]);
        arrivals.await_from(30_000_000);
        arrivals.add(31_000_000, 32_000_000);
        assert_eq!(
            (arrivals.first_ms, arrivals.fresh_ms),
            (vec![5.0, 2.0], vec![7.0, 2.0])
        );
    }
}
