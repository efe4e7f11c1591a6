//! Settles deliveries when the last stage or the quarantine has finished with them.
//!
//! Chunks that crash their consumer, or that it gives back, go to the quarantine after a number of
//! attempts.

use std::io;
use std::time::Instant;

use baler_common::transport::{ChunkIdentity, Delivery, Settled, Token, TransportError, Verdict};
use baler_connector_file::quarantine::{PoisonResult, PutAside};

use super::{Failures, Source};
use crate::error::AnalysisError;
use crate::parcel::Processed;

impl Source {
    pub(super) fn settle_done(&mut self) -> Result<(), AnalysisError> {
        while let Ok(processed) = self.verdicts.try_recv() {
            self.processed(processed)?;
        }
        while let Some(result) = self.aside.next() {
            self.quarantined(result)?;
        }
        Ok(())
    }

    /// Settles a delivery that the last stage has released.
    pub(super) fn processed(&mut self, processed: Processed) -> Result<(), AnalysisError> {
        self.note_failure(&processed);
        self.conclude(processed.token, processed.verdict)
    }

    /// Waits until all chunks for the quarantine are settled, until `by` at most.
    pub(super) fn settle_aside(&mut self, by: Instant) -> Result<(), AnalysisError> {
        while let Some(result) = self.aside.wait(by) {
            self.quarantined(result)?;
        }
        Ok(())
    }

    /// Settles a chunk that the quarantine has kept, or could not keep.
    fn quarantined(&mut self, answer: PoisonResult) -> Result<(), AnalysisError> {
        if let Some(token) = answer.token {
            let verdict = match answer.result {
                Ok(_) => Verdict::Reject,
                Err(_) => Verdict::Retry,
            };
            self.conclude(token, verdict)?;
        }
        let put_aside = answer.result.map_err(|source| AnalysisError::Quarantine {
            origin: answer.origin.to_string().into(),
            source,
        })?;
        if let PutAside::Counted(why) = put_aside {
            *self.report.not_kept.entry(why).or_default() += 1;
        }
        Ok(())
    }

    /// Settles a delivery that was in work, and the copies that waited for it.
    pub(super) fn conclude(&mut self, token: Token, verdict: Verdict) -> Result<(), AnalysisError> {
        let known = self.in_work.remove(&token).flatten();
        if let Some(known) = known.filter(|_| verdict != Verdict::Retry) {
            self.failures.remove(&known);
        }
        let copies = match known {
            Some((identity, _)) => self.lanes.settled(identity, verdict),
            None => Vec::new(),
        };
        if let (Some(member), Some((identity, checksum))) = (&self.member, known) {
            if member.settled(identity, checksum, verdict) {
                self.report.duplicates_across_readers += 1;
                self.report.processed_twice += 1;
            }
        }
        let counter = match verdict {
            Verdict::Ack => &mut self.report.acknowledged,
            Verdict::Reject => &mut self.report.quarantined,
            Verdict::Retry => &mut self.report.given_back,
        };
        *counter += 1;
        self.settle(token, verdict)?;
        copies
            .into_iter()
            .try_for_each(|(token, verdict)| self.settle(token, verdict))
    }

    pub(super) fn settle(&mut self, token: Token, verdict: Verdict) -> Result<(), AnalysisError> {
        match self.reader.settle(token, verdict) {
            Ok(Settled::Done) => Ok(()),
            Ok(Settled::Stale) => {
                self.report.stale += 1;
                Ok(())
            }
            // The delivery comes again. If it was acknowledged, it is then recognised as a
            // duplicate.
            Err(error) => self.recoverable(error),
        }
    }

    pub(super) fn recoverable(&mut self, error: TransportError) -> Result<(), AnalysisError> {
        if !error.is_retryable() {
            return Err(error.into());
        }
        self.report.transport_errors += 1;
        Ok(())
    }
}

/// The number of remembered failed chunks. A chunk that is given back comes again soon, so there
/// are hardly more than the demand.
const MAX_FAILED: usize = 1_024;

impl Source {
    /// Records that a chunk is about to be processed, or returns why it goes to quarantine instead.
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

    /// A medium counts attempts for every chunk that a dead consumer had received, not only for the
    /// one that killed it. So from half of the limit on, chunks are processed and settled one at a
    /// time. Then all valid chunks before the killing one are settled, and the first chunk at the
    /// limit is the killing one. Later chunks get their chance.
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
    fn note_failure(&mut self, processed: &Processed) {
        let known = self.in_work.get(&processed.token).copied().flatten();
        let (Some(known), Some(reason), Some(_)) = (known, &processed.failure, self.max_attempts)
        else {
            return;
        };
        // Chunks that went to other readers meanwhile are never settled here. So all are forgotten.
        if self.failures.len() >= MAX_FAILED && !self.failures.contains_key(&known) {
            self.failures.clear();
        }
        let failures = self.failures.entry(known).or_default();
        failures.count += 1;
        failures.last.clone_from(reason);
    }

    /// Records that the chunk of the last step was processed.
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
