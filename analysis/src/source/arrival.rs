//! Handles received chunks: decodes them, recognises copies, or passes them to the quarantine.

use baler_common::container::{ChunkHeader, ChunkSummary};
use baler_common::transport::{ChunkMeta, Damaged, Delivery, Verdict};
use baler_connector_file::quarantine::PoisonJob;

use super::{Source, Step};
use crate::error::AnalysisError;
use crate::lanes::{Arrival, EarlierChunk};
use crate::parcel::Parcel;

impl Source {
    pub(super) fn arrived(&mut self, delivery: Delivery) -> Result<Step, AnalysisError> {
        if delivery.redelivered {
            self.report.redelivered += 1;
        }
        // The checksum protects the metadata in the container; the medium's metadata may be older.
        let summary = self.decoder.summarize(&delivery.bytes).ok();
        let own = summary.as_ref().and_then(meta);
        // Without a summary the chunk does not decode, and its checksum is never recorded.
        let checksum = summary.as_ref().map_or(0, |summary| summary.checksum);
        let meta = own.or(delivery.meta);
        let identity = meta.map(|meta| meta.identity);
        if let Some(identity) = identity {
            match self.lanes.arrived(identity, checksum, delivery.token) {
                Arrival::Conflict => return Ok(self.conflicting(delivery, meta)),
                Arrival::New => {}
                Arrival::Waiting => return Ok(Step::Idle),
                Arrival::Duplicate => {
                    self.settle(delivery.token, Verdict::Ack)?;
                    return Ok(Step::Idle);
                }
            }
            let member = self.member.as_ref();
            match member.map(|it| it.earlier_chunk(identity, checksum)) {
                Some(EarlierChunk::Other) => {
                    self.lanes.settled(identity, Verdict::Retry);
                    return Ok(self.conflicting(delivery, meta));
                }
                Some(EarlierChunk::Same) => {
                    self.lanes.settled(identity, Verdict::Ack);
                    self.report.duplicates_across_readers += 1;
                    self.settle(delivery.token, Verdict::Ack)?;
                    return Ok(Step::Idle);
                }
                Some(EarlierChunk::Unknown) | None => {}
            }
        }
        let known = identity.map(|identity| (identity, checksum));
        self.in_work.insert(delivery.token, known);
        if let Some(summary) = summary.filter(|it| self.is_outside(it)) {
            if let Some(header) = &summary.header {
                self.note_header(header);
            }
            self.report.outside_time += 1;
            self.conclude(delivery.token, Verdict::Ack)?;
            return Ok(Step::Idle);
        }
        if let Some(reason) = self.begin_attempt(&delivery, known)? {
            self.poisoned(delivery, meta, &reason, true);
            return Ok(Step::Idle);
        }
        let decoded = match self.decoder.decode(&delivery.bytes) {
            Ok(decoded) => decoded,
            Err(error) => {
                self.poisoned(delivery, meta, &error.to_string(), false);
                return Ok(Step::Idle);
            }
        };
        if let Some(header) = &decoded.summary.header {
            self.note_header(header);
        }
        self.report.chunks += 1;
        self.report.records += decoded.batch.len() as u64;
        self.report.bytes += delivery.bytes.len() as u64;
        let done = self.done.clone();
        Ok(Step::Chunk(Parcel::delivered(
            decoded, identity, delivery, done,
        )))
    }

    fn note_header(&mut self, header: &ChunkHeader) {
        self.lanes.note_header(header);
        if let Some(member) = &self.member {
            member.note_header(header);
        }
    }

    /// Whether no record of a chunk was logged in the wanted span.
    fn is_outside(&self, summary: &ChunkSummary) -> bool {
        let spans = self.time_span.as_ref().zip(summary.time_span);
        spans.is_some_and(|(wanted, (first, last))| last < wanted.start || first >= wanted.end)
    }

    /// Passes a chunk to the quarantine because it has the identity of another settled one.
    fn conflicting(&mut self, delivery: Delivery, meta: Option<ChunkMeta>) -> Step {
        self.report.conflicts += 1;
        // Without its identity: the verdict on this chunk must not affect another one.
        self.in_work.insert(delivery.token, None);
        let reason = "another chunk with this identity was processed before, and its checksum \
                      differs; compare the sender of this chunk with the producer's";
        self.poisoned(delivery, meta, reason, true);
        Step::Idle
    }

    /// Passes a delivery to the quarantine. It is settled when the quarantine has it.
    fn poisoned(
        &mut self,
        delivery: Delivery,
        meta: Option<ChunkMeta>,
        reason: &str,
        is_sound: bool,
    ) {
        self.aside.put(PoisonJob {
            token: Some(delivery.token),
            bytes: delivery.bytes,
            origin: delivery.origin,
            meta,
            reason: reason.into(),
            is_sound,
            peer: None,
        });
    }

    /// Passes damage to the quarantine. If the medium has not skipped it, it is settled when the
    /// quarantine has it.
    pub(super) fn damaged(&mut self, damaged: Damaged) {
        if damaged.token.is_none() {
            self.report.quarantined += 1;
        }
        self.aside.put(PoisonJob {
            token: damaged.token,
            bytes: damaged.bytes,
            origin: damaged.origin,
            meta: None,
            reason: damaged.reason,
            is_sound: false,
            peer: damaged.peer,
        });
    }
}

/// Returns the metadata in a chunk; Kieker's container has none.
fn meta(summary: &ChunkSummary) -> Option<ChunkMeta> {
    Some(ChunkMeta {
        container: summary.container,
        // An added decoder may report more records than a chunk can have.
        records: u32::try_from(summary.records?).ok()?,
        identity: summary.identity()?,
    })
}
