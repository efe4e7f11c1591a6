//! The reading end.

mod cursor;
mod plain;
pub(crate) mod scanner;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use baler_common::transport::{
    ChunkReader, Damaged, Delivery, Order, Origin, ReaderCapability, ReaderCloseReport, Received,
    RetryClass, Settled, Token, TransportError, Verdict,
};
use bytes::Bytes;

use super::config::{FileReaderConfig, Keep};
use super::consumers::{Consumer, Position, Watermark, remove_consumed};
use super::error::{endpoint, io_error};
use super::numbers::{chunk_numbers, place_of};
use cursor::{Cursor, PathKind};
use scanner::{Piece, PieceContent};

/// The first pause of a follower at the end of the folder. The pause doubles while nothing comes.
const FIRST_POLL: Duration = Duration::from_millis(1);

/// The longest pause of a follower at the end of the folder.
const LONGEST_POLL: Duration = Duration::from_millis(100);

/// Reads the chunks of a folder, of one segment, or of a plain file.
///
/// Readers do not compete: each one gets every chunk. A reader starts no thread: `receive` and
/// `settle` do the work, and block while the disk is busy.
#[derive(Debug)]
pub struct FileReader {
    config: FileReaderConfig,
    capability: ReaderCapability,
    endpoint: Box<str>,
    stats: ReaderStats,
    cursor: Cursor,
    consumer: Option<Consumer>,
    last_commit: Instant,
    demand: usize,
    next_token: u64,
    /// Deliveries that are not settled, by position. The watermark stays at the first one. Settled ones
    /// leave at once: no position needs them.
    unsettled: BTreeMap<Position, Unsettled>,
    handed_out: HashMap<Token, Position>,
    /// Deliveries that came back with [`Verdict::Retry`].
    again: BTreeSet<Position>,
    /// The pause at the end before the next poll.
    poll: Duration,
}

#[derive(Debug)]
struct Unsettled {
    delivery: Delivery,
    number: u64,
}

/// Counts since the reader was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReaderStats {
    /// Pieces handed out as damaged.
    pub damaged_pieces: u64,
    /// Bytes skipped as damaged.
    pub damaged_bytes: u64,
    /// Chunk numbers that were never seen: damaged chunks, or chunks in segments that were removed.
    pub missing_chunks: u64,
    /// Segments removed because every consumer had settled them.
    pub consumed_segments: u64,
}

impl FileReader {
    /// Opens the path.
    ///
    /// # Errors
    ///
    /// The path does not exist (a follower waits for it) or cannot be read, or another reader uses
    /// the same consumer.
    pub fn open(config: FileReaderConfig) -> Result<Self, TransportError> {
        let fail = |error| io_error("open", &config.path, error);
        let kind = PathKind::of(&config.path, config.follow).map_err(fail)?;
        let limit = config.max_chunk_bytes.get();
        let mut cursor = Cursor::new(&config.path, kind, config.follow, limit);
        let consumer = match &config.consumer {
            None => None,
            Some(name) if kind == PathKind::Folder => Some(Consumer::open(&config.path, name)?),
            Some(_) => {
                return Err(TransportError::new(
                    "open",
                    endpoint(&config.path),
                    RetryClass::Final,
                    "only a folder of segments remembers consumers",
                ));
            }
        };
        let stored = consumer.as_ref().and_then(Consumer::stored);
        match (&config.chunks, stored) {
            (Some(wanted), _) => {
                let there = chunk_numbers(&config.path).map_err(fail)?;
                if !wanted.is_empty() && (wanted.start < there.start || wanted.end > there.end) {
                    let message = format!(
                        "the folder has the chunks {} to {}, not all of {} to {}",
                        there.start, there.end, wanted.start, wanted.end
                    );
                    let endpoint = endpoint(&config.path);
                    return Err(TransportError::new(
                        "open",
                        endpoint,
                        RetryClass::Final,
                        message,
                    ));
                }
                let place = place_of(&config.path, wanted.start).map_err(fail)?;
                cursor.go_to(place, wanted.start);
            }
            (None, Some(stored)) => cursor.go_to(stored.position, stored.next_chunk),
            (None, None) => cursor.start(config.from).map_err(fail)?,
        }
        let mut capability = ReaderCapability::new(crate::segments::SCHEME, Order::PerLane);
        capability.max_chunk_bytes = config.max_chunk_bytes;
        capability.ends = !config.follow;
        Ok(Self {
            endpoint: endpoint(&config.path),
            capability,
            stats: ReaderStats::default(),
            cursor,
            consumer,
            last_commit: Instant::now(),
            demand: usize::MAX,
            next_token: 0,
            unsettled: BTreeMap::new(),
            handed_out: HashMap::new(),
            again: BTreeSet::new(),
            poll: FIRST_POLL,
            config,
        })
    }

    /// Returns the counts so far.
    pub const fn stats(&self) -> ReaderStats {
        self.stats
    }

    /// Returns the position before which everything is settled.
    pub fn watermark(&self) -> Position {
        self.current_watermark().position
    }

    /// Writes the consumer's position now. Does nothing without a consumer's name.
    ///
    /// # Errors
    ///
    /// The position cannot be written; the previous one stays.
    pub fn commit_now(&mut self) -> Result<(), TransportError> {
        self.commit(true)
    }

    fn current_watermark(&self) -> Watermark {
        let (position, next_chunk) = match self.unsettled.first_key_value() {
            Some((position, first)) => (*position, first.number),
            None => (self.cursor.position(), self.cursor.next_chunk()),
        };
        Watermark {
            position,
            next_chunk,
        }
    }

    /// Writes the consumer's position, if it is due or `now` is set.
    fn commit(&mut self, now: bool) -> Result<(), TransportError> {
        let watermark = self.current_watermark();
        let Some(consumer) = &mut self.consumer else {
            return Ok(());
        };
        if now || self.last_commit.elapsed() >= self.config.commit_interval {
            self.last_commit = Instant::now();
            let before = consumer.stored().map(|stored| stored.position.segment);
            consumer.store(watermark)?;
            if before.is_some_and(|before| before < watermark.position.segment) {
                self.remove_consumed()?;
            }
        }
        Ok(())
    }

    /// Removes the segments that all consumers have settled, if the settings ask for it.
    fn remove_consumed(&mut self) -> Result<(), TransportError> {
        if self.config.keep == Keep::Consumed {
            let folder = &self.config.path;
            let removed =
                remove_consumed(folder).map_err(|error| io_error("remove from", folder, error))?;
            self.stats.consumed_segments += removed;
        }
        Ok(())
    }

    /// Returns damage, a chunk that came back, or the next chunk. Returns nothing if there is none
    /// now.
    fn next(&mut self) -> Result<Option<Received>, TransportError> {
        let consumer = self.consumer.as_mut();
        if let Some(bytes) = consumer.and_then(|consumer| consumer.damaged.take()) {
            let end = bytes.len() as u64;
            let reason = "the consumer's position is damaged; it starts over";
            let damaged = self.damaged("consumers".into(), 0, end, bytes.into(), reason.into());
            return Ok(Some(damaged));
        }
        if self.handed_out.len() >= self.demand {
            return Ok(None);
        }
        if let Some(position) = self.again.pop_first() {
            if let Some(entry) = self.unsettled.get_mut(&position) {
                entry.delivery.token = Token(self.next_token);
                entry.delivery.redelivered = true;
                self.next_token = self.next_token.wrapping_add(1);
                self.handed_out.insert(entry.delivery.token, position);
                return Ok(Some(Received::Chunk(entry.delivery.clone())));
            }
        }
        let expected = self.cursor.next_chunk();
        let end_chunk = self.config.chunks.as_ref().map_or(u64::MAX, |it| it.end);
        if expected >= end_chunk {
            return Ok(None);
        }
        let piece = self.cursor.advance();
        let piece = piece.map_err(|error| io_error("read", &self.config.path, error))?;
        let Some(Piece {
            start,
            end,
            content,
        }) = piece
        else {
            return Ok(None);
        };
        let lane: Box<str> = self.cursor.lane().into();
        match content {
            // Numbers may be left out: this one is the first one after the wanted chunks.
            PieceContent::Chunk { number, .. } if number >= end_chunk => Ok(None),
            PieceContent::Chunk {
                number,
                meta,
                bytes,
            } => {
                // Numbers begin again in a folder that was emptied.
                if expected > 0 && number > expected {
                    let missing = number - expected;
                    self.stats.missing_chunks = self.stats.missing_chunks.saturating_add(missing);
                }
                let delivery = Delivery {
                    token: Token(self.next_token),
                    bytes,
                    meta,
                    origin: self.origin(lane, start),
                    redelivered: false,
                    attempts: 0,
                };
                self.next_token = self.next_token.wrapping_add(1);
                let position = Position {
                    segment: self.cursor.position().segment,
                    offset: start,
                };
                let entry = Unsettled {
                    delivery: delivery.clone(),
                    number,
                };
                self.unsettled.insert(position, entry);
                self.handed_out.insert(delivery.token, position);
                Ok(Some(Received::Chunk(delivery)))
            }
            PieceContent::Damaged { bytes, reason } => {
                Ok(Some(self.damaged(lane, start, end, bytes, reason)))
            }
            // The cursor does not return these.
            PieceContent::Skipped(_) => Ok(None),
        }
    }

    fn damaged(
        &mut self,
        lane: Box<str>,
        start: u64,
        end: u64,
        bytes: Bytes,
        reason: Box<str>,
    ) -> Received {
        self.stats.damaged_pieces += 1;
        self.stats.damaged_bytes += end - start;
        Received::Damaged(Damaged {
            token: None,
            bytes,
            origin: self.origin(lane, start),
            reason,
            peer: None,
        })
    }

    fn origin(&self, lane: Box<str>, position: u64) -> Origin {
        Origin {
            endpoint: self.endpoint.clone(),
            lane,
            position,
        }
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
                self.poll = FIRST_POLL;
                return Ok(received);
            }
            // Without `follow` nothing more comes once everything is settled.
            if !self.config.follow && self.unsettled.is_empty() && self.demand > 0 {
                self.commit(true)?;
                return Ok(Received::End);
            }
            let now = Instant::now();
            if now >= by {
                return Ok(Received::Idle);
            }
            // Only a follower can get more chunks before its owner settles one.
            let pause = match self.config.follow && self.handed_out.len() < self.demand {
                true => self.poll.min(by - now),
                false => by - now,
            };
            thread::park_timeout(pause);
            self.poll = (self.poll * 2).min(LONGEST_POLL);
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
        // A follower may start before the folder exists. In an existing folder nothing is awaited:
        // all chunks are handed out.
        (self.config.follow && !self.config.path.exists()).then_some("folder")
    }

    fn close(mut self: Box<Self>, _by: Instant) -> ReaderCloseReport {
        let mut closed = self.commit(true);
        if closed.is_ok() && self.consumer.is_some() {
            closed = self.remove_consumed();
        }
        ReaderCloseReport {
            unsettled: self.handed_out.len(),
            error: closed.err(),
            unreported: 0,
        }
    }
}

/// A part of a path that was read: a chunk or damage.
#[derive(Debug)]
pub enum PathItem {
    /// A chunk, with its place.
    Chunk(Delivery),
    /// Bytes that are no chunk.
    Damaged(Damaged),
}

/// Reads all chunks of a folder of segments, of one segment, or of a plain file. A plain file holds
/// one chunk, or several native chunks. Ends after the first error.
///
/// # Errors
///
/// The path cannot be opened.
pub fn read_path(
    path: impl Into<PathBuf>,
) -> Result<impl Iterator<Item = Result<PathItem, TransportError>>, TransportError> {
    let mut reader = FileReader::open(FileReaderConfig::new(path))?;
    let mut next = move || {
        loop {
            match reader.receive(Instant::now())? {
                Received::Chunk(delivery) => {
                    reader.settle(delivery.token, Verdict::Ack)?;
                    return Ok(Some(PathItem::Chunk(delivery)));
                }
                Received::Damaged(damaged) => return Ok(Some(PathItem::Damaged(damaged))),
                Received::End => return Ok(None),
                Received::Assigned { .. } | Received::Revoked { .. } | Received::Idle => {}
            }
        }
    };
    let mut has_failed = false;
    Ok(std::iter::from_fn(move || {
        let item = if has_failed { None } else { next().transpose() };
        has_failed |= matches!(item, Some(Err(_)));
        item
    }))
}
