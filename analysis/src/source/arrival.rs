//! What comes in: decoded, known already, or put aside.

use baler_common::transport::{ChunkIdentity, Damaged, Delivery, Verdict};

use super::{Source, Step};
use crate::aside::Job;
use crate::error::AnalysisError;
use crate::lanes::Arrival;
use crate::parcel::Parcel;

impl Source {
    pub(super) fn arrived(&mut self, delivery: Delivery) -> Result<Step, AnalysisError> {
        if delivery.redelivered {
            self.report.redelivered = self.report.redelivered.saturating_add(1);
        }
        // The container's own word is checked by its checksum; the medium's may be older.
        let own = self
            .decoder
            .summarize(&delivery.bytes)
            .ok()
            .and_then(|it| it.identity());
        let identity = own.or_else(|| delivery.meta.map(|meta| meta.identity));
        if let Some(identity) = identity {
            match self.lanes.arrived(identity, delivery.token) {
                Arrival::New => {}
                Arrival::Waiting => return Ok(Step::Idle),
                Arrival::Duplicate => {
                    self.settle(delivery.token, Verdict::Ack)?;
                    return Ok(Step::Idle);
                }
            }
            if self
                .member
                .as_ref()
                .is_some_and(|it| it.is_settled(identity))
            {
                self.lanes.settled(identity, Verdict::Ack);
                let copies = &mut self.report.duplicates_across_readers;
                *copies = copies.saturating_add(1);
                self.settle(delivery.token, Verdict::Ack)?;
                return Ok(Step::Idle);
            }
        }
        self.in_work.insert(delivery.token, identity);
        let decoded = match self.decoder.decode(&delivery.bytes) {
            Ok(decoded) => decoded,
            Err(error) => {
                self.poisoned(delivery, identity, &error.to_string());
                return Ok(Step::Idle);
            }
        };
        if let Some(header) = &decoded.summary.header {
            self.lanes.told(header);
            if let Some(member) = &self.member {
                member.told(header);
            }
        }
        let count =
            |total: u64, more: usize| total.saturating_add(u64::try_from(more).unwrap_or(u64::MAX));
        self.report.chunks = self.report.chunks.saturating_add(1);
        self.report.records = count(self.report.records, decoded.batch.len());
        self.report.bytes = count(self.report.bytes, delivery.bytes.len());
        let done = self.done.clone();
        let Delivery { token, origin, .. } = delivery;
        Ok(Step::Chunk(Parcel::delivered(
            decoded, identity, origin, token, done,
        )))
    }

    /// Puts aside what was delivered; it is settled when the quarantine has it.
    fn poisoned(&mut self, delivery: Delivery, identity: Option<ChunkIdentity>, reason: &str) {
        self.aside.put(Job {
            token: Some(delivery.token),
            bytes: delivery.bytes,
            origin: delivery.origin,
            identity,
            reason: reason.into(),
        });
    }

    pub(super) fn damaged(&mut self, damaged: Damaged) {
        self.report.quarantined = self.report.quarantined.saturating_add(1);
        self.aside.put(Job {
            token: None,
            bytes: damaged.bytes,
            origin: damaged.origin,
            identity: None,
            reason: damaged.reason,
        });
    }
}
