//! One writer of Kieker: messages in, chunks out.

use std::collections::VecDeque;
use std::hash::{BuildHasher as _, RandomState};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use baler_common::container::{KiekerStream, StreamStep};
use baler_common::transport::{ChunkIdentity, ChunkMeta, Delivery, Epoch, ProducerId, Token};
use bytes::Bytes;

use super::catalog;

/// The most bytes of a record that is not complete, with the strings in it.
const MAX_UNFINISHED: usize =
    KiekerStream::MAX_RECORD_BYTES + KiekerStream::MAX_RECORD_STRING_BYTES;

/// One writer of Kieker.
#[derive(Debug)]
pub(super) struct Sender {
    /// The number of its registry, which each life of a writer draws anew.
    pub(super) id: i64,
    pub(super) stream: KiekerStream,
    pub(super) last_message: Instant,
    /// The beginning of a record, and the messages that it is in.
    unfinished: Vec<u8>,
    unfinished_tokens: Vec<Token>,
    /// The messages of the records that go into the next chunk, and of strings.
    tokens: Vec<Token>,
    is_redelivered: bool,
    /// The identity of the next chunk.
    next: ChunkIdentity,
}

/// A chunk, and the messages that it came from.
#[derive(Debug)]
pub(super) struct Finished {
    pub(super) bytes: Bytes,
    pub(super) meta: ChunkMeta,
    pub(super) tokens: Vec<Token>,
    pub(super) is_redelivered: bool,
}

/// A message that cannot be, with what was unfinished before it.
#[derive(Debug)]
pub(super) struct Broken {
    pub(super) bytes: Vec<u8>,
    pub(super) tokens: Vec<Token>,
    pub(super) reason: Box<str>,
}

impl Sender {
    pub(super) fn new(id: i64) -> Self {
        let hash = RandomState::new().hash_one(id);
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH);
        let nanos = since_1970.unwrap_or_default().as_nanos();
        Self {
            id,
            stream: KiekerStream::of_messages(catalog(), id),
            last_message: Instant::now(),
            unfinished: Vec::new(),
            unfinished_tokens: Vec::new(),
            tokens: Vec::new(),
            is_redelivered: false,
            next: ChunkIdentity {
                producer: ProducerId::new(id.cast_unsigned().into()),
                epoch: Epoch {
                    start_unix_ns: u64::try_from(nanos).unwrap_or(u64::MAX),
                    random: u32::try_from(hash >> 32).unwrap_or_default(),
                },
                lane: 0,
                sequence: 0,
            },
        }
    }

    /// Whether a message that begins with no item of its own may go on with this writer's record.
    pub(super) fn is_within_a_record(&self) -> bool {
        !self.unfinished.is_empty()
    }

    /// Whether nothing of it would be lost.
    pub(super) fn is_idle(&self) -> bool {
        self.unfinished.is_empty() && self.tokens.is_empty() && self.stream.records() == 0
    }

    /// Takes a message apart; chunks that are full go to `ready`.
    pub(super) fn take(
        &mut self,
        message: &Delivery,
        ready: &mut VecDeque<Finished>,
    ) -> Result<(), Broken> {
        self.last_message = Instant::now();
        self.is_redelivered |= message.redelivered;
        let begins = KiekerStream::registry_of(&message.bytes).is_some();
        let lost = (begins && self.is_within_a_record()).then(|| {
            let reason = "the rest of a record is missing; was its writer killed, or is this not \
                          the only reader of the queue?";
            self.broken(reason.into())
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
            }
            match step {
                Ok(StreamStep::Full) => ready.extend(self.chunk()),
                Ok(_) if self.unfinished.len() > MAX_UNFINISHED => {
                    let reason = format!("a record has more than {MAX_UNFINISHED} bytes");
                    return Err(self.broken(reason.into()));
                }
                Ok(_) => return Ok(()),
                Err(error) => return Err(self.broken(error.to_string().into())),
            }
        }
    }

    /// Makes a chunk of the records so far. Returns the messages of strings alone, which need no
    /// chunk.
    pub(super) fn flush(&mut self, ready: &mut VecDeque<Finished>) -> Vec<Token> {
        ready.extend(self.chunk());
        std::mem::take(&mut self.tokens)
    }

    fn chunk(&mut self) -> Option<Finished> {
        let chunk = self.stream.take_chunk()?;
        let identity = self.next;
        self.next.sequence = identity.sequence.saturating_add(1);
        let records = chunk.records;
        let (container, bytes) = chunk.for_every_consumer(&catalog(), identity);
        Some(Finished {
            bytes: bytes.into(),
            meta: ChunkMeta {
                container,
                records,
                identity,
            },
            tokens: std::mem::take(&mut self.tokens),
            is_redelivered: std::mem::take(&mut self.is_redelivered),
        })
    }

    fn broken(&mut self, reason: Box<str>) -> Broken {
        Broken {
            bytes: std::mem::take(&mut self.unfinished),
            tokens: std::mem::take(&mut self.unfinished_tokens),
            reason,
        }
    }

    /// Forgets what is not settled; its messages come again.
    pub(super) fn forget_unsettled(&mut self) {
        drop(self.stream.take_chunk());
        self.unfinished.clear();
        self.unfinished_tokens.clear();
        self.tokens.clear();
    }
}
