//! Which chunks crash their consumer, or are given back by it: they go to the quarantine after a
//! number of attempts.

use std::io;

use baler_common::transport::{ChunkIdentity, Delivery};

use super::Source;
use crate::error::AnalysisError;
use crate::parcel::Processed;

/// How many chunks are remembered that failed. What is given back comes again soon, so it is hardly
/// more than the demand.
const MAX_FAILED: usize = 1_024;

/// How often a chunk was given back, and why the last time.
#[derive(Debug, Default)]
pub(super) struct Failures {
    count: u32,
    last: Box<str>,
}

impl Source {
    /// Notes that a chunk is about to be processed; or yields why it is put aside instead.
    pub(super) fn begin_attempt(
        &mut self,
        delivery: &Delivery,
        known: Option<(ChunkIdentity, u32)>,
    ) -> Result<Option<String>, AnalysisError> {
        let Some(limit) = self.max_attempts else {
            return Ok(None);
        };
        let failures = known.and_then(|known| self.failures.get(&known));
        if let Some(Failures { count, last }) = failures.filter(|it| it.count >= limit.get()) {
            let reason =
                format!("the consumer gave this chunk back {count} times; the last time: {last}");
            return Ok(Some(reason));
        }
        let Some(in_work) = &mut self.in_work_on_disk else {
            return Ok(self.judge_by_medium(delivery, limit.get()));
        };
        let deaths = in_work.attempts(&delivery.bytes);
        if deaths >= limit.get() {
            return Ok(Some(format!(
                "the consumer died {deaths} times while it processed this chunk (--max-attempts \
                 {limit})"
            )));
        }
        in_work.begin(&delivery.bytes).map_err(unwritten)?;
        Ok(None)
    }

    /// A medium counts attempts of every chunk that a dead consumer had received, not only of the one
    /// that killed it. So from half of the limit on, chunks are processed and settled one at a time:
    /// all sound chunks before the killing one are then gone, and the first chunk at the limit is the
    /// killing one. Those after it get their chance.
    fn judge_by_medium(&mut self, delivery: &Delivery, limit: u32) -> Option<String> {
        let attempts = delivery.attempts;
        let pace = match attempts >= limit.div_ceil(2) {
            true => 1,
            false => self.demand,
        };
        if pace != self.pace {
            self.pace = pace;
            self.reader.set_demand(pace);
        }
        let is_put_aside = attempts >= limit && !self.has_put_suspect_aside;
        self.has_put_suspect_aside |= is_put_aside;
        is_put_aside.then(|| {
            format!(
                "the medium delivered this chunk {attempts} times before, and no consumer settled it \
                 (--max-attempts {limit})"
            )
        })
    }

    /// Counts a chunk that is given back.
    pub(super) fn note_failure(&mut self, processed: &Processed) {
        let known = self.in_work.get(&processed.token).copied().flatten();
        let (Some(known), Some(reason), Some(_)) = (known, &processed.failure, self.max_attempts)
        else {
            return;
        };
        // Chunks that other readers got meanwhile are never settled here. So all are forgotten.
        if self.failures.len() >= MAX_FAILED && !self.failures.contains_key(&known) {
            self.failures.clear();
        }
        let failures = self.failures.entry(known).or_default();
        failures.count = failures.count.saturating_add(1);
        failures.last.clone_from(reason);
    }

    /// Notes that the chunk of the step before was processed.
    pub(super) fn end_attempt(&mut self) -> Result<(), AnalysisError> {
        match &mut self.in_work_on_disk {
            Some(in_work) => in_work.end().map_err(unwritten),
            None => Ok(()),
        }
    }
}

fn unwritten(error: io::Error) -> AnalysisError {
    AnalysisError::output("the file that counts attempts, in the quarantine", error)
}
