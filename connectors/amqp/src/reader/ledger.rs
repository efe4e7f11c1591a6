//! What was delivered on a channel, and what became of it. No I/O here.

use std::collections::{HashMap, HashSet, VecDeque};

use baler_common::transport::{ChunkMeta, Settled, Token, Verdict};
use bytes::Bytes;

use super::position::StreamPosition;
use crate::headers;

/// What was delivered on a channel, and what became of it.
///
/// A channel numbers its deliveries from 1 without gaps (AMQP 0.9.1, `delivery-tag`). A queue keeps
/// what is not settled, and delivers it again. A stream does neither: an acknowledgement only lets
/// the broker send more. So a delivery of a stream is acknowledged as soon as it is handed out, is
/// kept here until it is settled, and [`StreamPosition`] notes how far everything is settled.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    /// How many deliveries of this channel are done with and forgotten.
    forgotten: u64,
    /// The deliveries that follow.
    states: VecDeque<State>,
    /// How many acknowledgements must be sent.
    owed: usize,
    /// Handed out and not settled.
    held: HashMap<Token, Arrived>,
    /// Handed out over earlier channels and not settled.
    stale: HashSet<Token>,
    /// How many tokens were given so far.
    tokens: u64,
    /// `None` for a queue.
    pub(super) stream: Option<StreamPosition>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// An acknowledgement must be sent.
    Acknowledged,
    /// Waiting, or handed out and not settled.
    Open,
    /// A message of its own settles it at the broker. An acknowledgement must not name it again: the
    /// broker closes the channel for that.
    Settled,
}

/// A message, taken from the client library.
#[derive(Debug, Clone)]
pub(super) struct Arrived {
    /// Its number on the channel (AMQP 0.9.1, `delivery-tag`).
    pub(super) tag: u64,
    /// Its number in the stream; that on the channel if it is in none.
    pub(super) position: u64,
    pub(super) bytes: Bytes,
    pub(super) meta: Option<ChunkMeta>,
    pub(super) redelivered: bool,
    /// How often it was delivered before and not settled, where the broker counts.
    pub(super) attempts: u32,
}

/// What a delivery is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arrival {
    /// It does not follow the one before. One was lost in between, and acknowledging past it would
    /// lose it for good.
    Gap,
    /// One below the watermark, or a repetition: a stream begins with whole batches.
    Known,
    /// The next one.
    New {
        /// How many before it should have come and are gone, by the stream's limits.
        gone: u64,
        /// It was delivered before.
        again: bool,
    },
}

/// What settling a delivery leads to.
#[derive(Debug)]
pub(super) enum SettleAction {
    /// It is to be handed out again.
    Again(Arrived),
    /// A message for this delivery alone must be sent.
    Nack(Nack),
    /// Nothing, yet.
    None,
}

/// A delivery that is not acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Nack {
    pub(super) tag: u64,
    pub(super) requeue: bool,
}

/// An acknowledgement to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Acknowledgement {
    pub(super) tag: u64,
    /// It is for everything up to this tag.
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
    /// A ledger of a stream that is read from there on.
    pub(super) fn of_stream(position: StreamPosition) -> Self {
        Self {
            stream: Some(position),
            ..Self::default()
        }
    }

    /// Notes the next delivery.
    pub(super) fn arrive(&mut self, arrived: &Arrived) -> Arrival {
        let known = u64::try_from(self.states.len()).unwrap_or(u64::MAX);
        if arrived.tag != self.forgotten.saturating_add(known).saturating_add(1) {
            return Arrival::Gap;
        }
        self.states.push_back(State::Open);
        let Some(stream) = &mut self.stream else {
            return Arrival::New {
                gone: 0,
                again: arrived.redelivered,
            };
        };
        let arrival = stream.arrive(arrived.position);
        if arrival == Arrival::Known {
            self.acknowledge_one(arrived.tag);
        }
        arrival
    }

    /// Notes that a delivery is handed out; returns its token.
    pub(super) fn hand_out(&mut self, arrived: &Arrived) -> Token {
        let mut kept = arrived.clone();
        if self.stream.is_some() {
            self.acknowledge_one(arrived.tag);
        } else {
            // The queue has them.
            kept.bytes = Bytes::new();
        }
        self.tokens += 1;
        let token = Token(self.tokens);
        self.held.insert(token, kept);
        token
    }

    /// Settles a delivery that is not handed out.
    pub(super) fn put_aside(&mut self, arrived: &Arrived) -> SettleAction {
        match &mut self.stream {
            None => self.nack(arrived.tag, false),
            Some(stream) => {
                stream.pass(arrived.position);
                self.acknowledge_one(arrived.tag);
                SettleAction::None
            }
        }
    }

    /// Settles a delivery that was handed out.
    pub(super) fn settle(&mut self, token: Token, verdict: Verdict) -> (Settled, SettleAction) {
        let Some(mut arrived) = self.held.remove(&token) else {
            self.stale.remove(&token);
            return (Settled::Stale, SettleAction::None);
        };
        let consequence = match (&mut self.stream, verdict) {
            (None, Verdict::Ack) => {
                self.acknowledge_one(arrived.tag);
                SettleAction::None
            }
            (None, Verdict::Reject | Verdict::Retry) => {
                self.nack(arrived.tag, verdict == Verdict::Retry)
            }
            (Some(_), Verdict::Retry) => {
                arrived.redelivered = true;
                SettleAction::Again(arrived)
            }
            (Some(stream), Verdict::Ack | Verdict::Reject) => {
                stream.pass(arrived.position);
                SettleAction::None
            }
        };
        (Settled::Done, consequence)
    }

    /// The state of a delivery, if it is open.
    fn open(&mut self, tag: u64) -> Option<&mut State> {
        let at = tag.checked_sub(self.forgotten.saturating_add(1))?;
        let state = self.states.get_mut(usize::try_from(at).ok()?)?;
        (*state == State::Open).then_some(state)
    }

    fn acknowledge_one(&mut self, tag: u64) {
        if let Some(state) = self.open(tag) {
            *state = State::Acknowledged;
            self.owed += 1;
        }
    }

    fn nack(&mut self, tag: u64, requeue: bool) -> SettleAction {
        if let Some(state) = self.open(tag) {
            *state = State::Settled;
        }
        SettleAction::Nack(Nack { tag, requeue })
    }

    /// How many deliveries are handed out and not settled.
    pub(super) fn handed(&self) -> usize {
        self.held.len() + self.stale.len()
    }

    /// How many deliveries that were handed out the broker counts against `prefetch`.
    pub(super) fn taken(&self) -> usize {
        match self.stream {
            None => self.held.len() + self.owed,
            Some(_) => self.owed,
        }
    }

    /// How many acknowledgements must be sent.
    pub(super) fn owed(&self) -> usize {
        self.owed
    }

    /// Takes the acknowledgements that are sent now: one up to the first open delivery. If more than
    /// `behind` follow it, they are acknowledged one by one, or the broker would stop delivering.
    pub(super) fn acknowledge(&mut self, behind: usize) -> Vec<Acknowledgement> {
        let mut acknowledgements = Vec::new();
        let mut last = None;
        while let Some(State::Acknowledged | State::Settled) = self.states.front() {
            self.forgotten += 1;
            if self.states.pop_front() == Some(State::Acknowledged) {
                self.owed -= 1;
                last = Some(self.forgotten);
            }
        }
        acknowledgements.extend(last.map(|tag| Acknowledgement {
            tag,
            multiple: true,
        }));
        if self.owed > behind {
            for (tag, state) in (self.forgotten + 1..).zip(&mut self.states) {
                if *state == State::Acknowledged {
                    *state = State::Settled;
                    let multiple = false;
                    acknowledgements.push(Acknowledgement { tag, multiple });
                }
            }
            self.owed = 0;
        }
        acknowledgements
    }

    /// Forgets the channel. A queue delivers again all that was not settled at the broker, a stream
    /// all above the watermark.
    pub(super) fn reset(&mut self) {
        self.stale.extend(self.held.drain().map(|(token, _)| token));
        self.forgotten = 0;
        self.states.clear();
        self.owed = 0;
        if let Some(stream) = &mut self.stream {
            stream.reset();
        }
    }
}
