//! The deliveries of a channel, and how each was settled. No I/O here.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};

use baler_common::transport::{ChunkMeta, Settled, Token, Verdict};
use bytes::Bytes;

use super::position::{Arrival, StreamPosition};
use crate::headers;

/// The deliveries of a channel, and how each was settled.
///
/// A channel numbers its deliveries from 1 without gaps (AMQP 0.9.1, `delivery-tag`). A queue keeps
/// an unsettled message and delivers it again. A stream does neither: an acknowledgement only lets
/// the broker send more. So a delivery of a stream is acknowledged as soon as it is handed out. The
/// ledger keeps it until it is settled, and [`StreamPosition`] notes how far the stream is settled.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    /// The tag of the last delivery.
    last_tag: u64,
    /// The tags of the deliveries that are not settled.
    open: BTreeSet<u64>,
    /// The tags whose acknowledgements must be sent. A tag is removed with its acknowledgement: the
    /// broker closes the channel over a second one.
    acknowledged: BTreeSet<u64>,
    /// Must be sent, before any acknowledgement that follows.
    pub(super) nacks: Vec<Nack>,
    /// Messages of a stream that must be handed out again.
    pub(super) again: VecDeque<Arrived>,
    /// Handed out and not settled.
    held: HashMap<Token, Arrived>,
    /// Handed out over earlier channels and not settled.
    stale: HashSet<Token>,
    /// The last token.
    last_token: u64,
    /// `None` for a queue.
    pub(super) stream: Option<StreamPosition>,
}

/// A message, taken from the client library.
#[derive(Debug, Clone)]
pub(super) struct Arrived {
    /// Its number on the channel (AMQP 0.9.1, `delivery-tag`).
    pub(super) tag: u64,
    /// Its number in the stream. For a queue it is the tag.
    pub(super) position: u64,
    pub(super) bytes: Bytes,
    pub(super) meta: Option<ChunkMeta>,
    pub(super) redelivered: bool,
    /// How often the broker delivered it before without a settlement, if the broker counts.
    pub(super) attempts: u32,
}

/// A rejection of one delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Nack {
    pub(super) tag: u64,
    pub(super) requeue: bool,
}

/// An acknowledgement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Acknowledgement {
    pub(super) tag: u64,
    /// It includes all deliveries before this tag.
    pub(super) multiple: bool,
}

impl From<lapin::message::Delivery> for Arrived {
    fn from(delivery: lapin::message::Delivery) -> Self {
        let tag = delivery.delivery_tag;
        Self {
            tag,
            position: headers::stream_offset(&delivery.properties).unwrap_or(tag),
            meta: headers::meta(&delivery.properties),
            redelivered: delivery.redelivered,
            attempts: headers::delivery_count(&delivery.properties).unwrap_or(0),
            bytes: Bytes::from(delivery.data),
        }
    }
}

impl Ledger {
    /// The ledger of a stream that is read from this position on.
    pub(super) fn of_stream(position: StreamPosition) -> Self {
        Self {
            stream: Some(position),
            ..Self::default()
        }
    }

    /// Notes the next delivery.
    pub(super) fn arrive(&mut self, arrived: &Arrived) -> Arrival {
        if arrived.tag != self.last_tag + 1 {
            return Arrival::Gap;
        }
        self.last_tag = arrived.tag;
        self.open.insert(arrived.tag);
        let Some(stream) = &mut self.stream else {
            return Arrival::New {
                gone: 0,
                again: arrived.redelivered,
            };
        };
        let arrival = stream.arrive(arrived.position, crc32c::crc32c(&arrived.bytes));
        if arrival == Arrival::Known {
            self.set_acknowledged(arrived.tag);
        }
        arrival
    }

    /// Notes that a delivery is handed out, and returns its token.
    pub(super) fn hand_out(&mut self, arrived: &Arrived) -> Token {
        let mut kept = arrived.clone();
        if self.stream.is_some() {
            self.set_acknowledged(arrived.tag);
        } else {
            // The queue keeps the bytes.
            kept.bytes = Bytes::new();
        }
        self.last_token += 1;
        let token = Token(self.last_token);
        self.held.insert(token, kept);
        token
    }

    /// Rejects a delivery that is not handed out.
    pub(super) fn reject(&mut self, arrived: &Arrived) {
        if self.stream.is_some() {
            self.set_acknowledged(arrived.tag);
        }
        self.finish(arrived.clone(), Verdict::Reject);
    }

    /// Settles a delivery that was handed out.
    pub(super) fn settle(&mut self, token: Token, verdict: Verdict) -> Settled {
        let Some(arrived) = self.held.remove(&token) else {
            self.stale.remove(&token);
            return Settled::Stale;
        };
        self.finish(arrived, verdict);
        Settled::Done
    }

    fn finish(&mut self, mut arrived: Arrived, verdict: Verdict) {
        match (&mut self.stream, verdict) {
            (None, Verdict::Ack) => self.set_acknowledged(arrived.tag),
            (None, Verdict::Reject | Verdict::Retry) => {
                self.open.remove(&arrived.tag);
                self.nacks.push(Nack {
                    tag: arrived.tag,
                    requeue: verdict == Verdict::Retry,
                });
            }
            (Some(_), Verdict::Retry) => {
                arrived.redelivered = true;
                self.again.push_back(arrived);
            }
            (Some(stream), Verdict::Ack | Verdict::Reject) => stream.settle(arrived.position),
        }
    }

    fn set_acknowledged(&mut self, tag: u64) {
        if self.open.remove(&tag) {
            self.acknowledged.insert(tag);
        }
    }

    /// How many deliveries are handed out and not settled.
    pub(super) fn handed(&self) -> usize {
        self.held.len() + self.stale.len()
    }

    /// How many of the deliveries that were handed out the broker counts against `prefetch`.
    pub(super) fn taken(&self) -> usize {
        match self.stream {
            None => self.held.len() + self.owed(),
            Some(_) => self.owed(),
        }
    }

    /// How many acknowledgements must be sent.
    pub(super) fn owed(&self) -> usize {
        self.acknowledged.len()
    }

    /// Takes the acknowledgements that are sent now: one for all deliveries before the first open
    /// one. If more than `max_behind` remain, they are sent one by one. Otherwise the broker would
    /// stop delivering.
    ///
    /// The caller sends [`nacks`](Self::nacks) first: an acknowledgement of several deliveries
    /// includes the rejected ones among them.
    pub(super) fn acknowledge(&mut self, max_behind: usize) -> Vec<Acknowledgement> {
        let behind = match self.open.first() {
            Some(first_open) => self.acknowledged.split_off(first_open),
            None => BTreeSet::new(),
        };
        let before = std::mem::replace(&mut self.acknowledged, behind);
        let last = before.last().map(|tag| Acknowledgement {
            tag: *tag,
            multiple: true,
        });
        let mut acknowledgements = Vec::from_iter(last);
        if self.acknowledged.len() > max_behind {
            let behind = std::mem::take(&mut self.acknowledged).into_iter();
            acknowledgements.extend(behind.map(|tag| Acknowledgement {
                tag,
                multiple: false,
            }));
        }
        acknowledgements
    }

    /// Forgets the channel. A queue then delivers all unsettled messages again, a stream all above
    /// the watermark.
    pub(super) fn reset(&mut self) {
        let mut stale = std::mem::take(&mut self.stale);
        stale.extend(self.held.drain().map(|(token, _)| token));
        let mut stream = self.stream.take();
        if let Some(stream) = &mut stream {
            stream.reset();
        }
        *self = Self {
            stale,
            stream,
            last_token: self.last_token,
            ..Self::default()
        };
    }
}
