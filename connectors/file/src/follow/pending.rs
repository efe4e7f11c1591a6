//! Chunks and bad parts of files that are not settled, in the order of the files.

use std::collections::HashMap;

use baler_common::transport::{
    Damaged, Delivery, Received, Settled, SettledPrefix, Token, Verdict,
};

use crate::follow::{FileKey, Mark};

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
    /// By the number of their token.
    entries: SettledPrefix<u64, Entry<P>>,
    next_token: u64,
    /// Everything before these places is settled.
    settled: P,
}

#[derive(Debug)]
struct Entry<P> {
    content: Content,
    is_handed_out: bool,
    /// The places after it.
    after: P,
}

#[derive(Debug)]
enum Content {
    Chunk(Delivery),
    Damaged(Damaged),
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
        let entry = Entry {
            content,
            is_handed_out: false,
            after: P::default(),
        };
        self.entries.insert(self.next_token, entry);
        self.next_token += 1;
    }

    /// Notes the places after the last entry.
    pub fn reached(&mut self, places: P) {
        match self.entries.last_mut() {
            Some((_, last)) => last.after.add(places),
            None => self.settled.add(places),
        }
    }

    /// Returns the next entry to deliver, perhaps again.
    pub fn deliver(&mut self) -> Option<Received> {
        let mut unsettled = self.entries.unsettled_mut();
        let entry = unsettled.find(|entry| !entry.is_handed_out)?;
        entry.is_handed_out = true;
        Some(match &entry.content {
            Content::Chunk(delivery) => Received::Chunk(delivery.clone()),
            Content::Damaged(damaged) => Received::Damaged(damaged.clone()),
        })
    }

    /// Settles an entry.
    pub fn settle(&mut self, token: Token, verdict: Verdict) -> Settled {
        let entry = self.entries.get_mut(&token.0);
        let Some(entry) = entry.filter(|entry| entry.is_handed_out) else {
            return Settled::Stale;
        };
        entry.is_handed_out = false;
        match verdict {
            Verdict::Ack | Verdict::Reject => {
                self.entries.settle(&token.0);
            }
            Verdict::Retry => {
                if let Content::Chunk(delivery) = &mut entry.content {
                    delivery.redelivered = true;
                }
            }
        }
        while let Some((_, first)) = self.entries.pop_settled() {
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
        let entries = self.entries.iter();
        entries.filter(|entry| entry.is_handed_out).count()
    }

    /// Whether everything is settled.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}
