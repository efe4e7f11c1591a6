//! What goes in.

use baler_rig::checksum::Checksum;
use baler_rig::workload::{Call, Executions, Workload};

use crate::failure::Failure;

/// The calls that each emitting thread tells of, made before anything is measured.
#[derive(Debug)]
pub(super) struct Load {
    executions: Executions,
    calls: Vec<Vec<Call>>,
    expected: Checksum,
}

impl Load {
    /// So many records, dealt to the threads as evenly as they go.
    ///
    /// # Errors
    ///
    /// A record does not follow its schema.
    pub(super) fn new(seed: u64, records: usize, threads: usize) -> Result<Self, Failure> {
        let workload = Workload::new(seed);
        let mut expected = Checksum::default();
        let mut calls = Vec::with_capacity(threads);
        let mut left = records;
        for (number, remaining) in (0..).zip((1..=threads).rev()) {
            let share = left.div_ceil(remaining);
            left = left.saturating_sub(share);
            let own: Vec<_> = Workload::of_emitter(seed, number).take(share).collect();
            let checksum = Checksum::of_calls(&workload, &own);
            expected.merge(checksum.map_err(Failure::cannot("make the load"))?);
            calls.push(own);
        }
        Ok(Self {
            executions: Executions::new(&workload),
            calls,
            expected,
        })
    }

    /// Each thread's calls.
    pub(super) fn calls(&self) -> &[Vec<Call>] {
        &self.calls
    }

    /// What makes records of the calls; each thread takes a copy.
    pub(super) fn executions(&self) -> Executions {
        self.executions.clone()
    }

    /// How many records all threads have together.
    pub(super) fn records(&self) -> u64 {
        self.expected.records
    }

    /// Whether this is what went in.
    ///
    /// # Errors
    ///
    /// It is not; the message says what is different.
    pub(super) fn check(&self, found: Checksum) -> Result<(), Failure> {
        let expected = self.expected;
        if found == expected {
            return Ok(());
        }
        Err(Failure::new(if found.foreign > 0 {
            format!("{} records are of another type", found.foreign)
        } else if found.records != expected.records {
            format!("{} records of {} came out", found.records, expected.records)
        } else {
            "as many records came out as went in, but not the same ones".to_owned()
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_record_is_lost_in_dealing() {
        let load = Load::new(1, 1_001, 3).unwrap();
        let shares: Vec<_> = load.calls().iter().map(Vec::len).collect();
        assert_eq!(shares, [334, 334, 333]);
        assert_eq!(load.records(), 1_001);
    }

    #[test]
    fn what_is_different_is_said() {
        let load = Load::new(1, 10, 1).unwrap();
        let said = |change: fn(&mut Checksum)| {
            let mut found = load.expected;
            change(&mut found);
            load.check(found).map_err(|failure| failure.to_string())
        };
        assert_eq!(said(|_| ()), Ok(()));
        assert!(
            said(|found| found.records -= 1)
                .unwrap_err()
                .starts_with("9 records of 10")
        );
        assert!(
            said(|found| found.hash ^= 1)
                .unwrap_err()
                .contains("not the same")
        );
        assert!(
            said(|found| found.foreign = 2)
                .unwrap_err()
                .starts_with("2 records are")
        );
    }
}
