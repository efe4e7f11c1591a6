//! Chunks and bad parts of files that are not settled, in the order of the files.

use std::collections::{HashMap, VecDeque};

use baler_common::transport::{Damaged, Delivery, Received, Settled, Token, Verdict};

use crate::{FileKey, Mark};

/// Places up to which files are processed.
pub trait Places: Default {
    /// Adds later places.
    fn add(&mut self, later: Self);
}

impl Places for HashMap<FileKey, Mark> {
    fn add(&mut self, later: Self) {
        self.extend(later);
    }
}

/// Deliveries that are not settled, or that follow such a delivery. The position of a reader moves
/// along those that are settled without a gap.
#[derive(Debug, Default)]
pub struct Pending<P> {
    entries: VecDeque<Entry<P>>,
    next_token: u64,
    /// Everything before these places is settled.
    settled: P,
}

#[derive(Debug)]
struct Entry<P> {
    token: Token,
    content: Content,
    state: State,
    /// The places after it.
    after: P,
}

#[derive(Debug)]
enum Content {
    Chunk(Delivery),
    Damaged(Damaged),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// It is to be delivered, perhaps again.
    Ready,
    HandedOut,
    Settled,
}

impl<P: Places> Pending<P> {
    /// Adds a chunk, and gives it a token.
    pub fn push_chunk(&mut self, mut delivery: Delivery) {
        delivery.token = Token(self.next_token);
        self.push(Content::Chunk(delivery));
    }

    /// Adds a part that is no record, and gives it a token.
    pub fn push_damaged(&mut self, mut damaged: Damaged) {
        damaged.token = Some(Token(self.next_token));
        self.push(Content::Damaged(damaged));
    }

    fn push(&mut self, content: Content) {
        self.entries.push_back(Entry {
            token: Token(self.next_token),
            content,
            state: State::Ready,
            after: P::default(),
        });
        self.next_token += 1;
    }

    /// Notes the places after the last entry.
    pub fn reached(&mut self, places: P) {
        let last = self.entries.back_mut().map(|entry| &mut entry.after);
        last.unwrap_or(&mut self.settled).add(places);
    }

    /// Returns the next entry to deliver.
    pub fn deliver(&mut self) -> Option<Received> {
        let mut entries = self.entries.iter_mut();
        let entry = entries.find(|entry| entry.state == State::Ready)?;
        entry.state = State::HandedOut;
        Some(match &entry.content {
            Content::Chunk(delivery) => Received::Chunk(delivery.clone()),
            Content::Damaged(damaged) => Received::Damaged(damaged.clone()),
        })
    }

    /// Settles an entry.
    pub fn settle(&mut self, token: Token, verdict: Verdict) -> Settled {
        let mut entries = self.entries.iter_mut();
        let is_settled =
            |entry: &&mut Entry<P>| entry.token == token && entry.state == State::HandedOut;
        let Some(entry) = entries.find(is_settled) else {
            return Settled::Stale;
        };
        match verdict {
            Verdict::Ack | Verdict::Reject => entry.state = State::Settled,
            Verdict::Retry => {
                entry.state = State::Ready;
                if let Content::Chunk(delivery) = &mut entry.content {
                    delivery.redelivered = true;
                }
            }
        }
        let is_first_settled = |entry: &mut Entry<P>| entry.state == State::Settled;
        while let Some(first) = self.entries.pop_front_if(is_first_settled) {
            self.settled.add(first.after);
        }
        Settled::Done
    }

    /// Takes the places up to which everything is settled.
    pub fn take_settled(&mut self) -> P {
        std::mem::take(&mut self.settled)
    }

    /// Returns the number of entries that are delivered and not settled.
    pub fn handed_out(&self) -> usize {
        let handed_out = |it: &&Entry<P>| it.state == State::HandedOut;
        self.entries.iter().filter(handed_out).count()
    }

    /// Whether everything is settled.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}
