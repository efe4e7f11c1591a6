//! Chunks and bad lines that are not settled, in the order of the input.

use std::collections::{HashMap, VecDeque};

use baler_common::transport::{Damaged, Delivery, Received, Settled, Token, Verdict};
use baler_follow::{FileKey, Mark};

/// Places up to which files are processed.
pub(crate) type Places = HashMap<FileKey, Mark>;

/// Deliveries that are not settled, or that follow such a delivery.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    entries: VecDeque<Entry>,
    next_token: u64,
    /// Everything before these places is settled.
    settled: Places,
}

#[derive(Debug)]
struct Entry {
    token: Token,
    content: Content,
    state: State,
    /// The places after it.
    after: Places,
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

impl Pending {
    pub(crate) fn push_chunk(&mut self, mut delivery: Delivery) {
        delivery.token = Token(self.next_token);
        self.push(Content::Chunk(delivery));
    }

    pub(crate) fn push_damaged(&mut self, mut damaged: Damaged) {
        damaged.token = Some(Token(self.next_token));
        self.push(Content::Damaged(damaged));
    }

    fn push(&mut self, content: Content) {
        self.entries.push_back(Entry {
            token: Token(self.next_token),
            content,
            state: State::Ready,
            after: Places::new(),
        });
        self.next_token += 1;
    }

    /// Notes the places after the last entry.
    pub(crate) fn reached(&mut self, places: Places) {
        let last = self.entries.back_mut().map(|entry| &mut entry.after);
        last.unwrap_or(&mut self.settled).extend(places);
    }

    /// Returns the next entry to deliver.
    pub(crate) fn deliver(&mut self) -> Option<Received> {
        let mut entries = self.entries.iter_mut();
        let entry = entries.find(|entry| entry.state == State::Ready)?;
        entry.state = State::HandedOut;
        Some(match &entry.content {
            Content::Chunk(delivery) => Received::Chunk(delivery.clone()),
            Content::Damaged(damaged) => Received::Damaged(damaged.clone()),
        })
    }

    pub(crate) fn settle(&mut self, token: Token, verdict: Verdict) -> Settled {
        let mut entries = self.entries.iter_mut();
        let is_settled =
            |entry: &&mut Entry| entry.token == token && entry.state == State::HandedOut;
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
        let is_first_settled = |entry: &mut Entry| entry.state == State::Settled;
        while let Some(first) = self.entries.pop_front_if(is_first_settled) {
            self.settled.extend(first.after);
        }
        Settled::Done
    }

    /// Takes the places up to which everything is settled.
    pub(crate) fn take_settled(&mut self) -> Places {
        std::mem::take(&mut self.settled)
    }

    /// Returns the number of entries that are delivered and not settled.
    pub(crate) fn handed_out(&self) -> usize {
        let handed_out = |it: &&Entry| it.state == State::HandedOut;
        self.entries.iter().filter(handed_out).count()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}
