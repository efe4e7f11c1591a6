//! What became of chunks: delivered, on disk, lost, or to be sent in smaller ones.

use baler_common::container::{ChunkDecoder, LossReason};
use baler_common::transport::{Chunk, End, Fate};

use super::super::batch::ClosedBy;
use super::super::encoder::Problem;
use super::super::event::{Event, Hooks, Quarantined};
use super::super::shared::Shared;
use super::Dispatch;

impl Dispatch {
    pub(super) fn settle(&mut self, Fate { chunk, end }: Fate) {
        if !matches!(end, End::Confirmed | End::Spooled) {
            self.encoder.list_as_lost(&chunk.meta.identity);
        }
        match end {
            End::TooLarge { max_chunk_bytes } => {
                self.shared.ledger.given_up();
                self.split_chunk(&chunk, max_chunk_bytes);
            }
            end => account(&self.shared, &mut self.hooks, &chunk, end),
        }
    }

    /// Sends the records of a chunk anew, in smaller ones: the medium takes less than it said.
    fn split_chunk(&mut self, chunk: &Chunk, limit: usize) {
        let bytes = chunk.bytes.len();
        self.max_chunk_bytes = self.max_chunk_bytes.min(limit);
        let catalog = self.types.catalog_of(chunk.ticket);
        let mut decoder = ChunkDecoder::default().with_catalog(catalog);
        match decoder.decode(&chunk.bytes) {
            Ok(decoded) => {
                let problem = Problem::TooLarge {
                    bytes,
                    limit,
                    chunk: chunk.bytes.clone(),
                };
                // If it was the epoch's last, another one will be once its pieces have their fates.
                let header = decoded.summary.header;
                if header.is_some_and(|header| header.last_of_epoch) {
                    self.encoder.forget_last(&chunk.meta.identity);
                    self.sent_last = false;
                }
                let lane = usize::try_from(chunk.meta.identity.lane).unwrap_or_default();
                self.take_apart(lane, decoded.batch, problem, ClosedBy::Bytes, false);
                self.resent_below = self.next_ticket();
            }
            Err(_) => self.quarantine(Quarantined {
                record: "".into(),
                records: u64::from(chunk.meta.records),
                reason: LossReason::TooLarge,
                size_bytes: bytes,
                limit_bytes: limit,
                chunk: chunk.bytes.clone(),
            }),
        }
    }
}

/// Enters what became of a chunk into the ledger, and tells of one that was given up.
pub(super) fn account(shared: &Shared, hooks: &mut Hooks, chunk: &Chunk, end: End) {
    let records = chunk.meta.records;
    let (reason, error) = match end {
        End::Confirmed => return shared.ledger.delivered(records, chunk.bytes.len()),
        End::Spooled => return shared.ledger.spooled(records),
        End::TooLarge { .. } => (LossReason::TooLarge, None),
        End::Refused(error) => (LossReason::Refused, Some(error)),
        End::Undelivered(error) => (LossReason::Undelivered, error),
    };
    shared.ledger.given_up();
    shared.ledger.lost(reason, u64::from(records));
    hooks.tell(&Event::Lost {
        sequence: chunk.meta.identity.sequence,
        records,
        reason,
        error,
    });
}
