//! One writer of Kieker: messages in, chunks out.

use std::collections::VecDeque;
use std::sync::Arc;

use baler_common::record::Catalog;
use baler_common::transport::{ChunkIdentity, ChunkMeta, Delivery, ProducerId, Token};
use bytes::Bytes;

use crate::container::{KiekerStream, StreamStep, TimeUnit};
use crate::headers::first_identity;

/// The most bytes of an incomplete record with its strings.
const MAX_UNFINISHED: usize =
    KiekerStream::MAX_RECORD_BYTES + KiekerStream::MAX_RECORD_STRING_BYTES;

/// The buffer capacity that stays for the next message.
const IDLE_BYTES: usize = 4 << 10;

/// The approximate memory of a writer beside its strings and bytes.
const SENDER_BYTES: usize = 1 << 10;

/// One writer of Kieker.
#[derive(Debug)]
pub(super) struct Sender {
    /// The number of its registry. Each start of a writer chooses a new one at random.
    pub(super) id: i64,
    pub(super) stream: KiekerStream,
    /// The number of its last message among those of all writers.
    pub(super) last_message: u64,
    catalog: Arc<Catalog>,
    /// The beginning of a record, and its messages.
    unfinished: Vec<u8>,
    unfinished_tokens: Vec<Token>,
    /// The messages with the records of the next chunk, and with strings.
    tokens: Vec<Token>,
    is_redelivered: bool,
    /// The identity of the next chunk.
    next: ChunkIdentity,
}

/// A chunk and its messages.
#[derive(Debug)]
pub(super) struct Finished {
    pub(super) bytes: Bytes,
    pub(super) meta: ChunkMeta,
    pub(super) tokens: Vec<Token>,
    pub(super) is_redelivered: bool,
}

/// An invalid message, with the incomplete record before it.
#[derive(Debug)]
pub(super) struct Broken {
    pub(super) bytes: Vec<u8>,
    pub(super) tokens: Vec<Token>,
    pub(super) reason: Box<str>,
}

impl Broken {
    /// A message that belongs to no writer.
    pub(super) fn of(message: &Delivery, reason: &str) -> Self {
        Self {
            bytes: message.bytes.to_vec(),
            tokens: vec![message.token],
            reason: reason.into(),
        }
    }
}

impl Sender {
    pub(super) fn new(id: i64, catalog: Arc<Catalog>, time_unit: Option<TimeUnit>) -> Self {
        Self {
            id,
            stream: KiekerStream::of_messages(Arc::clone(&catalog), id).with_time_unit(time_unit),
            last_message: 0,
            catalog,
            unfinished: Vec::new(),
            unfinished_tokens: Vec::new(),
            tokens: Vec::new(),
            is_redelivered: false,
            next: first_identity(ProducerId::new(id.cast_unsigned().into())),
        }
    }

    /// Whether a message that does not begin with an item may continue this writer's record.
    pub(super) fn is_within_a_record(&self) -> bool {
        !self.unfinished.is_empty()
    }

    /// Whether the reader can forget this writer without losing records.
    pub(super) fn is_idle(&self) -> bool {
        self.unfinished.is_empty() && self.tokens.is_empty() && self.stream.records() == 0
    }

    /// Its approximate memory.
    pub(super) fn memory(&self) -> usize {
        let tokens = self.tokens.capacity() + self.unfinished_tokens.capacity();
        let bytes = self.unfinished.capacity() + tokens * size_of::<Token>();
        bytes + self.stream.memory() + SENDER_BYTES
    }

    /// Takes a message apart. Full chunks go to `ready`.
    pub(super) fn take(
        &mut self,
        message: &Delivery,
        ready: &mut VecDeque<Finished>,
    ) -> Result<(), Broken> {
        self.is_redelivered |= message.redelivered;
        let begins = KiekerStream::registry_of(&message.bytes).is_some();
        let lost = (begins && self.is_within_a_record()).then(|| {
            let reason = "the rest of a record is missing; was its writer killed, or is this not \
                          the only reader of the queue?";
            self.break_off(reason)
        });
        self.unfinished.extend_from_slice(&message.bytes);
        self.unfinished_tokens.push(message.token);
        let cut = self.cut(ready);
        match (lost, cut) {
            (None, cut) => cut,
            (Some(lost), Ok(())) => Err(lost),
            (Some(mut lost), Err(broken)) => {
                lost.bytes.extend(broken.bytes);
                lost.tokens.extend(broken.tokens);
                Err(lost)
            }
        }
    }

    fn cut(&mut self, ready: &mut VecDeque<Finished>) -> Result<(), Broken> {
        loop {
            let (taken, step) = self.stream.cut(&self.unfinished);
            self.unfinished.drain(..taken);
            if self.unfinished.is_empty() {
                self.tokens.append(&mut self.unfinished_tokens);
                self.unfinished.shrink_to(IDLE_BYTES);
            }
            match step {
                Ok(StreamStep::Full) => ready.extend(self.chunk()),
                Ok(_) if self.unfinished.len() > MAX_UNFINISHED => {
                    let reason = format!("a record has more than {MAX_UNFINISHED} bytes");
                    return Err(self.break_off(reason));
                }
                Ok(_) => return Ok(()),
                Err(error) => return Err(self.break_off(error.to_string())),
            }
        }
    }

    /// Makes a chunk of the records so far. Returns the messages with only strings, which need no
    /// chunk.
    pub(super) fn flush(&mut self, ready: &mut VecDeque<Finished>) -> Vec<Token> {
        ready.extend(self.chunk());
        std::mem::take(&mut self.tokens)
    }

    fn chunk(&mut self) -> Option<Finished> {
        let chunk = self.stream.take_chunk()?;
        let (meta, bytes) = chunk.for_every_consumer(&self.catalog, &mut self.next);
        Some(Finished {
            bytes: bytes.into(),
            meta,
            tokens: std::mem::take(&mut self.tokens),
            is_redelivered: std::mem::take(&mut self.is_redelivered),
        })
    }

    /// Gives up the incomplete record.
    pub(super) fn break_off(&mut self, reason: impl Into<Box<str>>) -> Broken {
        Broken {
            bytes: std::mem::take(&mut self.unfinished),
            tokens: std::mem::take(&mut self.unfinished_tokens),
            reason: reason.into(),
        }
    }

    /// Forgets the unsettled messages. They come again.
    pub(super) fn forget_unsettled(&mut self) {
        drop(self.stream.take_chunk());
        self.unfinished.clear();
        self.unfinished_tokens.clear();
        self.tokens.clear();
    }
}
