//! The reading end.

mod delivery;
mod kind;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::thread;
use std::time::{Duration, Instant};

use baler_common::transport::{
    ChunkReader, Delivery, Order, ReaderCapability, ReaderCloseReport, Received, Settled, Token,
    TransportError, Verdict,
};

use self::kind::{Kind, kind_of};
use crate::config::{FileReaderConfig, Keep};
use crate::consumed::remove_consumed;
use crate::consumer::{Consumer, Position, Watermark};
use crate::cursor::Cursor;
use crate::error::{endpoint, io_error};
use crate::plain::PlainFile;
use crate::stats::{ReaderCounters, ReaderStats};

/// Reads the chunks of a folder, of one segment, or of a plain file.
///
/// Readers do not compete: each one gets every chunk.
/// It starts no thread; `receive` and `settle` do the work, and block on the disk as long as that
/// takes.
#[derive(Debug)]
pub struct FileReader {
    config: FileReaderConfig,
    capability: ReaderCapability,
    endpoint: Box<str>,
    counters: ReaderCounters,
    walk: Walk,
    consumer: Option<Consumer>,
    last_commit: Instant,
    demand: usize,
    next_token: u64,
    /// What was handed out or waits to be handed out again, by position. The first one is the
    /// watermark: nothing after it counts as settled.
    unsettled: BTreeMap<Position, Unsettled>,
    handed_out: HashMap<Token, Position>,
    /// What came back with [`Verdict::Retry`].
    again: BTreeSet<Position>,
    /// How long to wait at the end before looking again.
    poll: Duration,
}

#[derive(Debug)]
enum Walk {
    Segments(Cursor),
    Plain(PlainFile),
}

#[derive(Debug)]
struct Unsettled {
    delivery: Delivery,
    number: u64,
}

impl FileReader {
    /// Opens the path.
    ///
    /// # Errors
    ///
    /// The path does not exist (a follower waits for it), cannot be read, or another reader is
    /// the same consumer.
    pub fn open(config: FileReaderConfig) -> Result<Self, TransportError> {
        let fail = |error| io_error("open", &config.path, error);
        let mut consumer = None;
        let walk = match kind_of(&config.path, config.follow).map_err(fail)? {
            Kind::Folder => {
                let limit = config.max_chunk_bytes.get();
                let mut cursor = Cursor::folder(&config.path, config.follow, limit);
                let opened = config
                    .consumer
                    .as_ref()
                    .map(|name| Consumer::open(&config.path, name))
                    .transpose()?;
                match opened.as_ref().and_then(Consumer::stored) {
                    Some(Watermark {
                        position,
                        next_chunk,
                    }) => cursor.go_to(position, next_chunk),
                    None => cursor.start(config.from).map_err(fail)?,
                }
                consumer = opened;
                Walk::Segments(cursor)
            }
            kind => {
                if config.consumer.is_some() {
                    return Err(TransportError::new(
                        "open",
                        endpoint(&config.path),
                        baler_common::transport::RetryClass::Final,
                        "only a folder of segments remembers consumers",
                    ));
                }
                match kind {
                    Kind::Segment => {
                        let limit = config.max_chunk_bytes.get();
                        let mut cursor = Cursor::segment(&config.path, config.follow, limit);
                        cursor.start(config.from).map_err(fail)?;
                        Walk::Segments(cursor)
                    }
                    Kind::Folder | Kind::Plain => {
                        let limit = config.max_chunk_bytes.get();
                        Walk::Plain(PlainFile::open(&config.path, limit).map_err(fail)?)
                    }
                }
            }
        };
        let mut capability = ReaderCapability::new(crate::SCHEME, Order::PerLane);
        capability.max_chunk_bytes = config.max_chunk_bytes;
        capability.ends = !config.follow;
        Ok(Self {
            endpoint: endpoint(&config.path),
            capability,
            counters: ReaderCounters::default(),
            walk,
            consumer,
            last_commit: Instant::now(),
            demand: usize::MAX,
            next_token: 0,
            unsettled: BTreeMap::new(),
            handed_out: HashMap::new(),
            again: BTreeSet::new(),
            poll: config.poll_min,
            config,
        })
    }

    /// What was counted so far.
    pub fn stats(&self) -> ReaderStats {
        self.counters.stats()
    }

    /// Everything before this position is settled.
    pub fn watermark(&self) -> Position {
        self.current_watermark().position
    }

    /// Writes the consumer's position now. Nothing happens without a consumer's name.
    ///
    /// # Errors
    ///
    /// It cannot be written; the one before stays.
    pub fn commit_now(&mut self) -> Result<(), TransportError> {
        self.commit(true)
    }

    fn current_watermark(&self) -> Watermark {
        let reached = match &self.walk {
            Walk::Segments(cursor) => Watermark {
                position: cursor.position(),
                next_chunk: cursor.next_chunk(),
            },
            Walk::Plain(plain) => Watermark {
                position: plain.position(),
                next_chunk: 0,
            },
        };
        let first = self.unsettled.first_key_value();
        first.map_or(reached, |(position, first)| Watermark {
            position: *position,
            next_chunk: first.number,
        })
    }

    /// Writes the consumer's position, if it is due.
    fn commit(&mut self, now: bool) -> Result<(), TransportError> {
        let watermark = self.current_watermark();
        let Some(consumer) = &mut self.consumer else {
            return Ok(());
        };
        if now || self.last_commit.elapsed() >= self.config.commit_interval {
            self.last_commit = Instant::now();
            let before = consumer.stored().map(|stored| stored.position.segment);
            if consumer.store(watermark)? {
                self.counters.commits.add(1);
            }
            let passed = before.is_some_and(|before| before < watermark.position.segment);
            if self.config.keep == Keep::Consumed && passed {
                self.remove_consumed()?;
            }
        }
        Ok(())
    }

    /// Removes what all consumers have settled.
    fn remove_consumed(&self) -> Result<(), TransportError> {
        let folder = &self.config.path;
        let removed =
            remove_consumed(folder).map_err(|error| io_error("remove from", folder, error))?;
        self.counters.consumed_segments.add(removed.segments);
        self.counters.consumed_bytes.add(removed.bytes);
        Ok(())
    }

    /// Whether nothing can come any more: the end is reached, and nothing can be handed back.
    fn is_at_end(&self) -> bool {
        !self.config.follow && self.unsettled.is_empty()
    }
}

impl ChunkReader for FileReader {
    fn capability(&self) -> &ReaderCapability {
        &self.capability
    }

    fn set_demand(&mut self, chunks: usize) {
        self.demand = chunks;
    }

    fn receive(&mut self, by: Instant) -> Result<Received, TransportError> {
        loop {
            self.commit(false)?;
            if let Some(received) = self.next()? {
                self.poll = self.config.poll_min;
                return Ok(received);
            }
            if self.is_at_end() && self.demand > 0 {
                self.commit(true)?;
                return Ok(Received::End);
            }
            let left = by.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(Received::Idle);
            }
            // Only a follower can get more before its owner settles something.
            let pause = match self.config.follow && self.handed_out.len() < self.demand {
                true => self.poll.min(left),
                false => left,
            };
            thread::park_timeout(pause);
            self.poll = self.poll.saturating_mul(2).min(self.config.poll_max);
        }
    }

    fn settle(&mut self, token: Token, verdict: Verdict) -> Result<Settled, TransportError> {
        let Some(position) = self.handed_out.remove(&token) else {
            return Ok(Settled::Stale);
        };
        match verdict {
            Verdict::Ack | Verdict::Reject => {
                let entry = self.unsettled.remove(&position);
                if let (Err(error), Some(entry)) = (self.commit(false), entry) {
                    self.unsettled.insert(position, entry);
                    self.again.insert(position);
                    return Err(error);
                }
            }
            Verdict::Retry => {
                self.again.insert(position);
            }
        }
        Ok(Settled::Done)
    }

    fn waits_for(&self) -> Option<&'static str> {
        // A follower may come before the folder; of what is there it has handed out all.
        (self.config.follow && !self.config.path.exists()).then_some("folder")
    }

    fn close(mut self: Box<Self>, _by: Instant) -> ReaderCloseReport {
        let mut closed = self.commit(true);
        if closed.is_ok() && self.config.keep == Keep::Consumed && self.consumer.is_some() {
            closed = self.remove_consumed();
        }
        ReaderCloseReport {
            unsettled: self.handed_out.len(),
            error: closed.err(),
        }
    }
}
