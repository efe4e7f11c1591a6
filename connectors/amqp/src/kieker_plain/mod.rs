//! Messages of Kieker's own `AmqpWriter`, as chunks.
//!
//! ```text
//! AmqpWriter --strings, parts of records--> AmqpReader -> KiekerStream a writer -> KIKA/DFLT chunks
//!                                                  \-> strings -> RegistryFile
//! ```
//!
//! A message is settled at the broker with the chunk of its last record. Its strings are in the file
//! before that, since no later message repeats them.

#[doc(hidden)]
pub mod fuzzing;
mod registry_file;
mod sender;
mod senders;

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use baler_common::transport::{
    ChunkReader, Damaged, Delivery, Failure, Origin, ReaderCapability, ReaderCloseReport,
    ReaderStats, Received, Settled, Token, TransportError, Verdict,
};
use baler_files::schema;

use super::config::AmqpConfig;
use super::reader::{AmqpReader, AmqpReaderCounts};
use sender::{Broken, Finished};
use senders::Senders;

/// How long a record may wait for others in its chunk.
const MAX_AGE: Duration = Duration::from_millis(100);

/// Reads the messages that Kieker's `AmqpWriter` publishes, and hands out chunks of their records.
///
/// It must be the only reader of its queue: it needs every message, in order.
#[derive(Debug)]
pub struct KiekerPlainReader {
    messages: AmqpReader,
    endpoint: Box<str>,
    /// The number of connections before the last message.
    connections: u64,
    senders: Senders,
    /// Chunks that are not handed out. Retried ones come first.
    ready: VecDeque<Finished>,
    damaged: VecDeque<Damaged>,
    handed_out: HashMap<Token, Finished>,
    next_token: u64,
    demand: usize,
    /// The deadline for the next chunk with the records so far.
    due: Option<Instant>,
}

impl KiekerPlainReader {
    /// Starts to read. The broker may be away.
    ///
    /// # Errors
    ///
    /// The errors of [`AmqpReader::new`]. Or the configuration names no file of strings, the file cannot
    /// be read, or another reader has it.
    pub fn new(config: AmqpConfig) -> Result<Self, TransportError> {
        let endpoint: Box<str> = config.to_string().into();
        let at = |failure: Failure| failure.at(&endpoint);
        let Some(path) = &config.registry_file else {
            let message = "format=kieker-plain needs registry_file=FILE";
            return Err(at(Failure::last("read from", message)));
        };
        let catalog = schema::catalog(config.schema.as_deref()).map_err(at)?;
        let senders = Senders::open(path, catalog, config.time_unit).map_err(at)?;
        Ok(Self {
            messages: AmqpReader::new(config)?,
            endpoint,
            connections: 0,
            senders,
            ready: VecDeque::new(),
            damaged: VecDeque::new(),
            handed_out: HashMap::new(),
            next_token: 0,
            demand: usize::MAX,
            due: None,
        })
    }

    /// The events of the messages so far.
    pub fn counts(&self) -> AmqpReaderCounts {
        self.messages.counts()
    }

    /// Takes a message apart.
    fn take(&mut self, message: &Delivery) -> Result<(), TransportError> {
        let connections = self.messages.counts().connections;
        if connections != self.connections {
            self.connections = connections;
            self.senders.forget_unsettled();
            self.ready.clear();
        }
        let taken = self.senders.take(message, &mut self.ready);
        let taken = taken.map_err(|failure| failure.at(&self.endpoint))?;
        self.settle_messages(&taken.settled, Verdict::Ack)?;
        if let Some(broken) = taken.broken {
            self.put_aside(broken, message)?;
        }
        self.due.get_or_insert_with(|| Instant::now() + MAX_AGE);
        Ok(())
    }

    fn put_aside(&mut self, broken: Broken, message: &Delivery) -> Result<(), TransportError> {
        for token in broken.tokens {
            self.messages.settle(token, Verdict::Reject)?;
        }
        self.damaged.push_back(Damaged {
            token: None,
            bytes: broken.bytes.into(),
            origin: message.origin.clone(),
            reason: broken.reason,
            peer: None,
        });
        Ok(())
    }

    /// Makes chunks of the records so far.
    fn flush(&mut self) -> Result<(), TransportError> {
        self.due = None;
        let settled = self.senders.flush(&mut self.ready);
        // These messages have only strings, which the file has now.
        self.settle_messages(&settled, Verdict::Ack).map(drop)
    }

    fn settle_messages(
        &mut self,
        tokens: &[Token],
        verdict: Verdict,
    ) -> Result<Settled, TransportError> {
        if !tokens.is_empty() {
            self.senders.sync().map_err(|it| it.at(&self.endpoint))?;
        }
        let mut settled = Settled::Done;
        for token in tokens {
            if self.messages.settle(*token, verdict)? == Settled::Stale {
                settled = Settled::Stale;
            }
        }
        Ok(settled)
    }

    fn hand_out(&mut self) -> Option<Delivery> {
        if self.handed_out.len() >= self.demand {
            return None;
        }
        let chunk = self.ready.pop_front()?;
        let token = Token(self.next_token);
        self.next_token = self.next_token.wrapping_add(1);
        let delivery = Delivery {
            token,
            bytes: chunk.bytes.clone(),
            meta: Some(chunk.meta),
            origin: Origin::of_chunk(&self.endpoint, &chunk.meta.identity),
            redelivered: chunk.is_redelivered,
            attempts: 0,
        };
        self.handed_out.insert(token, chunk);
        Some(delivery)
    }
}

impl ChunkReader for KiekerPlainReader {
    fn capability(&self) -> &ReaderCapability {
        self.messages.capability()
    }

    fn set_demand(&mut self, chunks: usize) {
        self.demand = chunks;
        // Without demand for chunks there is none for messages.
        let messages = if chunks == 0 { 0 } else { usize::MAX };
        self.messages.set_demand(messages);
    }

    fn receive(&mut self, by: Instant) -> Result<Received, TransportError> {
        loop {
            if let Some(delivery) = self.hand_out() {
                return Ok(Received::Chunk(delivery));
            }
            if let Some(damaged) = self.damaged.pop_front() {
                return Ok(Received::Damaged(damaged));
            }
            let is_full = self.handed_out.len() >= self.demand;
            self.messages
                .set_demand(if is_full { 0 } else { usize::MAX });
            let until = self.due.map_or(by, |due| due.min(by));
            match self.messages.receive(until)? {
                Received::Chunk(message) => self.take(&message)?,
                Received::Idle if self.due.is_some_and(|due| due <= Instant::now()) => {}
                other => return Ok(other),
            }
            if self.due.is_some_and(|due| due <= Instant::now()) {
                self.flush()?;
            }
        }
    }

    fn settle(&mut self, token: Token, verdict: Verdict) -> Result<Settled, TransportError> {
        let Some(mut chunk) = self.handed_out.remove(&token) else {
            return Ok(Settled::Stale);
        };
        if verdict == Verdict::Retry {
            chunk.is_redelivered = true;
            self.ready.push_front(chunk);
            return Ok(Settled::Done);
        }
        self.settle_messages(&chunk.tokens, verdict)
    }

    fn waits_for(&self) -> Option<&'static str> {
        self.messages.waits_for()
    }

    fn stats(&self) -> ReaderStats {
        self.messages.stats()
    }

    fn close(self: Box<Self>, by: Instant) -> ReaderCloseReport {
        let unsettled = self.handed_out.len();
        let report = Box::new(self.messages).close(by);
        ReaderCloseReport {
            unsettled,
            ..report
        }
    }
}
