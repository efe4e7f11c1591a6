//! Which chunks crash their consumer: they go to the quarantine after a number of attempts.

use std::io;

use baler_common::transport::Delivery;

use super::Source;
use crate::error::AnalysisError;

impl Source {
    /// Notes that a chunk is about to be processed; or yields why it is put aside instead.
    pub(super) fn begin_attempt(
        &mut self,
        delivery: &Delivery,
    ) -> Result<Option<String>, AnalysisError> {
        let Some(limit) = self.max_attempts else {
            return Ok(None);
        };
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
