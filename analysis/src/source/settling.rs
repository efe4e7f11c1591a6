//! Settles deliveries when the last stage or the quarantine is done with them.

use std::time::Instant;

use baler_common::transport::{Settled, Token, TransportError, Verdict};

use super::Source;
use crate::error::AnalysisError;
use crate::parcel::Processed;
use crate::quarantine_thread::PoisonResult;

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

    /// Settles a delivery that the last stage has let go of.
    pub(super) fn processed(&mut self, processed: Processed) -> Result<(), AnalysisError> {
        self.note_failure(&processed);
        self.conclude(processed.token, processed.verdict)
    }

    /// Waits until everything is settled that was put aside, `by` at most.
    pub(super) fn settle_aside(&mut self, by: Instant) -> Result<(), AnalysisError> {
        while let Some(result) = self.aside.wait(by) {
            self.quarantined(result)?;
        }
        Ok(())
    }

    /// Settles a chunk that the quarantine has, or could not keep.
    fn quarantined(&mut self, answer: PoisonResult) -> Result<(), AnalysisError> {
        if let Some(token) = answer.token {
            let verdict = match answer.result {
                Ok(()) => Verdict::Reject,
                Err(_) => Verdict::Retry,
            };
            self.conclude(token, verdict)?;
        }
        answer.result.map_err(|source| AnalysisError::Quarantine {
            origin: answer.origin.to_string().into(),
            source,
        })
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
                let report = &mut self.report;
                report.duplicates_across_readers =
                    report.duplicates_across_readers.saturating_add(1);
                report.processed_twice = report.processed_twice.saturating_add(1);
            }
        }
        let counter = match verdict {
            Verdict::Ack => &mut self.report.acknowledged,
            Verdict::Reject => &mut self.report.quarantined,
            Verdict::Retry => &mut self.report.given_back,
        };
        *counter = counter.saturating_add(1);
        self.settle(token, verdict)?;
        copies
            .into_iter()
            .try_for_each(|(token, verdict)| self.settle(token, verdict))
    }

    pub(super) fn settle(&mut self, token: Token, verdict: Verdict) -> Result<(), AnalysisError> {
        match self.reader.settle(token, verdict) {
            Ok(Settled::Done) => Ok(()),
            Ok(Settled::Stale) => {
                self.report.stale = self.report.stale.saturating_add(1);
                Ok(())
            }
            // The delivery will come again and is then known as a duplicate.
            Err(error) => self.recoverable(error),
        }
    }

    pub(super) fn recoverable(&mut self, error: TransportError) -> Result<(), AnalysisError> {
        if !error.is_retryable() {
            return Err(error.into());
        }
        self.report.transport_errors = self.report.transport_errors.saturating_add(1);
        Ok(())
    }
}
