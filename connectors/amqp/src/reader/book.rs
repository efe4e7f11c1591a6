//! What of a queue or of a stream was delivered and what became of it.

use baler_common::transport::{ChunkMeta, Settled, Token, Verdict};
use bytes::Bytes;

use super::queue::{Acknowledgement, Ledger};
use super::stream::{Arrival, StreamLedger};
use crate::config::Start;
use crate::headers;

/// What of a queue or of a stream was delivered and what became of it: the two differ in who keeps
/// what is not settled.
#[derive(Debug)]
pub(super) enum Book {
    /// The broker does.
    Queue(Ledger),
    /// We do.
    Stream(StreamBook),
}

/// A stream's ledger, and how many messages of it the broker may send.
#[derive(Debug, Default)]
pub(super) struct StreamBook {
    pub(super) ledger: StreamLedger,
    /// The last message that came over this channel.
    last_tag: u64,
    /// The broker knows that we are done with everything up to this one, and sends as many more.
    credited: u64,
    /// Whether the watermark moved since it was saved.
    pub(super) unsaved: bool,
}

/// What settling a delivery leads to.
#[derive(Debug)]
pub(super) enum Consequence {
    /// Nothing, yet.
    None,
    /// The broker is to be told of this delivery alone.
    Tell(u64),
    /// It is to be delivered again.
    Again(Arrived),
}

impl Book {
    pub(super) fn stream(start: Start) -> Self {
        Self::Stream(StreamBook {
            ledger: StreamLedger::from(start),
            ..StreamBook::default()
        })
    }

    /// Whether the next delivery is the next one indeed. If it is not, one was lost in between,
    /// and acknowledging past it would lose it for good.
    pub(super) fn follows(&mut self, tag: u64) -> bool {
        match self {
            Self::Queue(ledger) => ledger.arrive(tag),
            Self::Stream(book) => {
                let follows = tag == book.last_tag.saturating_add(1);
                if follows {
                    book.last_tag = tag;
                }
                follows
            }
        }
    }

    /// What a delivery is, by its number.
    pub(super) fn arrive(&mut self, arrived: &Arrived) -> Arrival {
        match self {
            Self::Queue(_) => Arrival::New {
                gone: 0,
                again: arrived.redelivered,
            },
            Self::Stream(book) => book.ledger.arrive(arrived.position),
        }
    }

    /// A delivery is handed out, and named so.
    pub(super) fn hand_out(&mut self, arrived: &Arrived) -> Token {
        match self {
            Self::Queue(ledger) => ledger.hand_out(arrived.tag),
            Self::Stream(book) => book.ledger.hand_out(arrived.clone()),
        }
    }

    /// A delivery that is not handed out is done with; yields whether the broker is to be told of
    /// it alone.
    pub(super) fn put_aside(&mut self, arrived: &Arrived) -> Consequence {
        match self {
            Self::Queue(ledger) => {
                ledger.put_aside(arrived.tag);
                Consequence::Tell(arrived.tag)
            }
            Self::Stream(book) => {
                book.ledger.pass(arrived.position);
                book.unsaved = true;
                Consequence::None
            }
        }
    }

    pub(super) fn settle(&mut self, token: Token, verdict: Verdict) -> (Settled, Consequence) {
        match self {
            Self::Queue(ledger) => {
                let (settled, alone) = ledger.settle(token, verdict);
                (settled, alone.map_or(Consequence::None, Consequence::Tell))
            }
            Self::Stream(book) => {
                let before = book.ledger.position();
                let (settled, again) = book.ledger.settle(token, verdict);
                book.unsaved |= book.ledger.position() != before;
                (settled, again.map_or(Consequence::None, Consequence::Again))
            }
        }
    }

    /// How many deliveries are handed out and not settled.
    pub(super) fn handed(&self) -> usize {
        match self {
            Self::Queue(ledger) => ledger.handed(),
            Self::Stream(book) => book.ledger.handed(),
        }
    }

    /// How many deliveries that left the waiting line the broker counts against `prefetch`.
    pub(super) fn taken(&self) -> usize {
        match self {
            Self::Queue(ledger) => ledger.taken(),
            // It is told when they are handed out.
            Self::Stream(_) => 0,
        }
    }

    /// How many acknowledgements the broker is owed; `waiting` is the first delivery that is not
    /// handed out.
    pub(super) fn owed(&self, waiting: Option<&Arrived>) -> usize {
        match self {
            Self::Queue(ledger) => ledger.owed(),
            Self::Stream(book) => {
                let owed = book.done(waiting).saturating_sub(book.credited);
                usize::try_from(owed).unwrap_or(usize::MAX)
            }
        }
    }

    /// The acknowledgements to be sent now; [`Ledger::acknowledge`].
    pub(super) fn acknowledge(
        &mut self,
        behind: usize,
        waiting: Option<&Arrived>,
    ) -> Vec<Acknowledgement> {
        match self {
            Self::Queue(ledger) => ledger.acknowledge(behind),
            Self::Stream(book) => {
                let tag = book.done(waiting);
                let multiple = true;
                let owed = tag > book.credited;
                book.credited = tag;
                let acknowledgement = owed.then_some(Acknowledgement { tag, multiple });
                acknowledgement.into_iter().collect()
            }
        }
    }

    /// The channel is gone.
    pub(super) fn reset(&mut self) {
        match self {
            Self::Queue(ledger) => ledger.reset(),
            Self::Stream(book) => {
                book.ledger.reset();
                book.last_tag = 0;
                book.credited = 0;
            }
        }
    }
}

impl StreamBook {
    /// Up to which delivery nothing waits any more: that is all that the broker needs to know.
    fn done(&self, waiting: Option<&Arrived>) -> u64 {
        waiting.map_or(self.last_tag, |first| first.tag.saturating_sub(1))
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    fn arrived(tag: u64) -> Arrived {
        Arrived {
            tag,
            position: tag + 100,
            bytes: Bytes::new(),
            meta: None,
            redelivered: false,
            attempts: 0,
        }
    }

    #[test]
    fn stream_sends_more_when_chunks_are_handed_out_not_when_they_are_settled() {
        let mut book = Book::stream(Start::First);
        for tag in 1..=5 {
            assert!(book.follows(tag));
            book.arrive(&arrived(tag));
        }
        assert!(!book.follows(7));
        let waiting = arrived(3);
        assert_eq!(book.owed(Some(&waiting)), 2);
        let acknowledgements = book.acknowledge(9, Some(&waiting));
        assert_eq!(
            acknowledgements,
            [Acknowledgement {
                tag: 2,
                multiple: true
            }]
        );
        assert_eq!((book.owed(Some(&waiting)), book.owed(None)), (0, 3));
        assert!(book.acknowledge(9, Some(&waiting)).is_empty());
        book.reset();
        assert!(book.follows(1));
        assert_eq!(book.owed(None), 1);
    }
}
