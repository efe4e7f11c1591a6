//! What is handed out: the next chunk, one that came back, or damage.

use baler_common::transport::{
    ChunkMeta, Damaged, Delivery, Origin, Received, Token, TransportError,
};
use bytes::Bytes;

use super::{FileReader, Unsettled, Walk};
use crate::consumer::Position;
use crate::cursor::Found;
use crate::error::io_error;
use crate::plain::Piece;

impl FileReader {
    pub(super) fn next(&mut self) -> Result<Option<Received>, TransportError> {
        if let Some(bytes) = self
            .consumer
            .as_mut()
            .and_then(|consumer| consumer.damaged.take())
        {
            let at = Position::default();
            let reason = "the consumer's position is damaged; it starts over";
            let skipped = bytes.len() as u64;
            return Ok(Some(self.damaged(
                "consumers".into(),
                at,
                bytes.into(),
                skipped,
                reason,
            )));
        }
        if self.handed_out.len() >= self.demand {
            return Ok(None);
        }
        if let Some(position) = self.again.pop_first()
            && let Some(entry) = self.unsettled.get_mut(&position)
        {
            entry.delivery.token = Token(self.next_token);
            entry.delivery.redelivered = true;
            self.next_token = self.next_token.wrapping_add(1);
            self.handed_out.insert(entry.delivery.token, position);
            self.counters.redelivered.add(1);
            return Ok(Some(Received::Chunk(entry.delivery.clone())));
        }
        let (lane, found, expected) = match &mut self.walk {
            Walk::Segments(cursor) => {
                let expected = cursor.next_chunk();
                let found = cursor.advance();
                let at = match &found {
                    Ok(Found::Chunk { at, .. } | Found::Damaged { at, .. }) => *at,
                    Ok(Found::Nothing) | Err(_) => cursor.position(),
                };
                (cursor.lane(at), found, expected)
            }
            Walk::Plain(plain) => {
                let piece = plain.advance();
                let lane = plain.lane().into();
                let piece = piece.map_err(|error| io_error("read", &self.config.path, error))?;
                return Ok(piece.map(|piece| match piece {
                    Piece::Chunk { at, chunk } => self.hand_out(lane, at, 0, None, chunk),
                    Piece::Damaged {
                        at,
                        bytes,
                        skipped,
                        reason,
                    } => self.damaged(lane, at, bytes, skipped, &reason),
                }));
            }
        };
        match found.map_err(|error| io_error("read", &self.config.path, error))? {
            Found::Chunk { at, header, chunk } => {
                if expected > 0 {
                    let missing = header.number.saturating_sub(expected);
                    self.counters.missing_chunks.add(missing);
                }
                Ok(Some(self.hand_out(
                    lane.into(),
                    at,
                    header.number,
                    header.meta,
                    chunk,
                )))
            }
            Found::Damaged {
                at,
                bytes,
                skipped,
                error,
            } => {
                let reason = error.to_string();
                Ok(Some(self.damaged(lane.into(), at, bytes, skipped, &reason)))
            }
            Found::Nothing => Ok(None),
        }
    }

    fn hand_out(
        &mut self,
        lane: Box<str>,
        at: Position,
        number: u64,
        meta: Option<ChunkMeta>,
        bytes: Bytes,
    ) -> Received {
        let token = Token(self.next_token);
        self.next_token = self.next_token.wrapping_add(1);
        self.counters.chunks.add(1);
        self.counters.bytes.add(bytes.len() as u64);
        let delivery = Delivery {
            token,
            bytes,
            meta,
            origin: self.origin(lane, at),
            redelivered: false,
            attempts: 0,
        };
        let entry = Unsettled {
            delivery: delivery.clone(),
            number,
        };
        self.unsettled.insert(at, entry);
        self.handed_out.insert(token, at);
        Received::Chunk(delivery)
    }

    fn damaged(
        &self,
        lane: Box<str>,
        at: Position,
        bytes: Bytes,
        skipped: u64,
        reason: &str,
    ) -> Received {
        self.counters.damaged_pieces.add(1);
        self.counters.damaged_bytes.add(skipped);
        Received::Damaged(Damaged {
            bytes,
            origin: self.origin(lane, at),
            reason: reason.into(),
        })
    }

    fn origin(&self, lane: Box<str>, at: Position) -> Origin {
        Origin {
            endpoint: self.endpoint.clone(),
            lane,
            position: at.offset,
        }
    }
}
