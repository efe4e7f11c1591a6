//! Messages of Kieker's own `AmqpWriter`, as chunks.
//!
//! ```text
//! AmqpWriter --strings, parts of records--> reader of a medium -> KiekerStream a writer -> KIKA/DFLT chunks
//!                                                             \-> strings -> RegistryFile
//! ```
//!
//! A message is settled at the broker with the chunk of its last record. Its strings are in the file
//! before that, since no later message repeats them.
//!
//! The medium does not know this format. [`writer`], [`receiver`] and [`browser`] add the setting
//! `format=kieker-plain` to the URIs of a medium.

mod config;
#[doc(hidden)]
pub mod fuzzing;
mod registry_file;
mod sender;
mod senders;

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use baler_common::transport::uri::{Uri, UriError};
use baler_common::transport::{
    Browse, ChunkReader, ChunkWriter, Damaged, Delivery, Medium, OpenReader, Origin,
    ReaderCapability, ReaderCloseReport, ReaderFactory, ReaderStats, Readership, Received, Settled,
    Token, TransportError, Verdict,
};

use crate::schema;
use config::{MessageConfig, Settings};
use sender::{Broken, Finished};
use senders::Senders;

/// How long a record may wait for others in its chunk.
const MAX_AGE: Duration = Duration::from_millis(100);

/// Makes the sending end of a medium, which sends chunks alone.
///
/// # Errors
///
/// The errors of the medium, or the URI says `format=kieker-plain`.
pub fn writer(mut uri: Uri, medium: &Medium) -> Result<Box<dyn ChunkWriter>, UriError> {
    let settings = Settings::take(&mut uri)?;
    let writer = (medium.writer)(uri)?;
    match settings.check()? {
        None => Ok(writer),
        Some(_) => {
            let why = "format=kieker-plain is one of readers; write chunks, which Kieker's \
                       ChunkingAmqpReader reads with --container kieker";
            Err(UriError::refused(why))
        }
    }
}

/// Makes the receiving end of a medium, for chunks or, with `format=kieker-plain`, for the messages
/// of Kieker's `AmqpWriter`.
///
/// # Errors
///
/// The errors of the medium, or the settings exclude each other.
pub fn receiver(mut uri: Uri, follow: bool, medium: &Medium) -> Result<ReaderFactory, UriError> {
    let settings = Settings::take(&mut uri)?;
    let endpoint: Box<str> = uri.to_string().into();
    let messages = (medium.receiver)(uri, follow)?;
    let Some(config) = settings.check()? else {
        return Ok(messages);
    };
    Ok(ReaderFactory::new(Readership::OneProcess, move || {
        KiekerMessageReader::open(&config, &endpoint, || messages.open())
    }))
}

/// Makes the receiving end of a medium that takes nothing from other readers, and shows messages as
/// they are.
///
/// # Errors
///
/// The errors of the medium, or the settings exclude each other.
pub fn browser(mut uri: Uri, browse: Browse, medium: &Medium) -> Result<ReaderFactory, UriError> {
    let settings = Settings::take(&mut uri)?;
    let Some(open) = medium.browser else {
        return Err(UriError::refused("its readers always take what they read"));
    };
    let browser = open(uri, browse)?;
    settings.check().map(|_| browser)
}

/// Reads the messages that Kieker's `AmqpWriter` publishes, and hands out chunks of their records.
///
/// It must be the only reader of its queue: it needs every message, in order.
struct KiekerMessageReader {
    messages: Box<dyn ChunkReader>,
    endpoint: Box<str>,
    /// The number of reconnects before the last message.
    reconnects: u64,
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

impl KiekerMessageReader {
    /// Starts to read. The file of strings is open before the medium is.
    ///
    /// # Errors
    ///
    /// The medium cannot be opened. The schema or the file of strings cannot be read, or another
    /// reader has the file.
    fn open(
        config: &MessageConfig,
        endpoint: &str,
        open: impl FnOnce() -> Result<OpenReader, TransportError>,
    ) -> Result<OpenReader, TransportError> {
        let catalog = schema::catalog(config.schema.as_deref());
        let senders = catalog
            .and_then(|catalog| Senders::open(&config.registry_file, catalog, config.time_unit));
        let senders = senders.map_err(|failure| failure.at(endpoint))?;
        let opened = open()?;
        let reader = Self {
            messages: opened.reader,
            endpoint: endpoint.into(),
            reconnects: 0,
            senders,
            ready: VecDeque::new(),
            damaged: VecDeque::new(),
            handed_out: HashMap::new(),
            next_token: 0,
            demand: usize::MAX,
            due: None,
        };
        Ok(OpenReader {
            reader: Box::new(reader),
            ..opened
        })
    }

    /// Takes a message apart.
    fn take(&mut self, message: &Delivery) -> Result<(), TransportError> {
        if message.origin.endpoint != self.endpoint {
            self.endpoint = message.origin.endpoint.clone();
        }
        let reconnects = self.messages.stats().reconnects;
        if reconnects != self.reconnects {
            self.reconnects = reconnects;
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

impl ChunkReader for KiekerMessageReader {
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
        let report = self.messages.close(by);
        ReaderCloseReport {
            unsettled,
            ..report
        }
    }
}
