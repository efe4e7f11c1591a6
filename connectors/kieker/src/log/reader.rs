//! All folders of a log as one sequence of chunks.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{io, thread};

use baler_common::record::Catalog;
use baler_common::transport::{
    ChunkIdentity, ChunkReader, Damaged, Delivery, Order, Origin, ProducerId, ReaderCapability,
    ReaderCloseReport, Received, RetryClass, Settled, Token, TransportError, Verdict, WrongData,
};
use baler_connector_file::follow::{Pending, Places as _};

use super::config::KiekerLogConfig;
use super::file::BadPart;
use super::folder::{FolderStep, LogFolder, folders, log_names};
use super::position::LogPosition;
use crate::container::{KiekerChunk, KiekerStream};
use crate::headers::first_identity;
use crate::{LOG_SCHEME, schema, time_left};

/// The pause before a log that is followed is polled again.
const POLL: Duration = Duration::from_millis(100);

/// The shortest time between two positions that are saved while records come.
const SAVE_EVERY: Duration = Duration::from_millis(100);

/// Reads the records of a text or binary log, oldest first.
///
/// It starts no thread: `receive` and `settle` do the work, and block while the disk is busy.
#[derive(Debug)]
pub struct KiekerLogReader {
    config: KiekerLogConfig,
    capability: ReaderCapability,
    endpoint: Box<str>,
    catalog: Arc<Catalog>,
    folders: Vec<Source>,
    /// The chunk that is being filled.
    chunk: KiekerChunk,
    /// The identity of the next chunk.
    next: ChunkIdentity,
    demand: usize,
    pending: Pending<LogPosition>,
    /// The position that was saved last, and the position to save next.
    saved: LogPosition,
    settled: LogPosition,
    next_save: Instant,
    /// Whether the records that exist are passed over.
    is_skipping: bool,
    stopped: Option<TransportError>,
}

#[derive(Debug)]
struct Source {
    folder: LogFolder,
    head: Head,
}

/// The known part of a folder's next record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Head {
    Unknown,
    /// The logging timestamp of the record.
    At(i64),
    /// There is no record now.
    Missing,
}

impl KiekerLogReader {
    /// Opens a log.
    ///
    /// # Errors
    ///
    /// The folder cannot be read, or it has no log and is not followed, or the position cannot be
    /// read.
    pub fn open(config: KiekerLogConfig) -> Result<Self, TransportError> {
        let endpoint: Box<str> = format!("{LOG_SCHEME}:{}", config.folder.display()).into();
        let catalog = schema::catalog(config.schema.as_deref());
        let catalog = catalog.map_err(|failure| failure.at(&endpoint))?;
        let mut saved = LogPosition::default();
        if let Some(file) = &config.position_file {
            saved = LogPosition::load(file).map_err(|error| failed("read", file, error))?;
        }
        let mut capability = ReaderCapability::new(LOG_SCHEME, Order::PerLane);
        capability.ends = !config.follow;
        let mut hasher = DefaultHasher::new();
        config.folder.hash(&mut hasher);
        let producer = ProducerId::new(hasher.finish().into());
        let mut reader = Self {
            capability,
            catalog,
            folders: Vec::new(),
            chunk: KiekerChunk::default(),
            next: first_identity(producer),
            demand: usize::MAX,
            pending: Pending::default(),
            settled: saved.clone(),
            saved,
            next_save: Instant::now(),
            is_skipping: config.from_now,
            stopped: None,
            endpoint,
            config,
        };
        reader.look_for_folders()?;
        if !reader.config.follow {
            reader.check()?;
        }
        Ok(reader)
    }

    /// Returns an error for a log without files.
    fn check(&self) -> Result<(), TransportError> {
        let failed = |error| failed("read", &self.config.folder, error);
        for source in &self.folders {
            let names = log_names(source.folder.path());
            if !names.map_err(failed)?.is_empty() {
                return Ok(());
            }
        }
        let message = match self.folders.is_empty() {
            true => "there is no kieker.map in this folder, nor in one of its folders",
            false => "there is no file of a log (kieker*.dat, kieker*.bin) beside the map",
        };
        Err(failed(io::Error::new(io::ErrorKind::NotFound, message)))
    }

    fn look_for_folders(&mut self) -> Result<(), TransportError> {
        let found = folders(&self.config.folder);
        if self.config.follow
            && matches!(&found, Err(error) if error.kind() == io::ErrorKind::NotFound)
        {
            return Ok(());
        }
        for (path, name) in found.map_err(|error| failed("read", &self.config.folder, error))? {
            let place = self
                .folders
                .binary_search_by(|it| it.folder.name().cmp(&name));
            if let Err(place) = place {
                let position = self.settled.folders.get(&*name);
                let strings = KiekerStream::with_registry_apart(Arc::clone(&self.catalog))
                    .with_time_unit(self.config.time_unit);
                let folder = LogFolder::new(path, &name, strings, position);
                let head = Head::Unknown;
                self.folders.insert(place, Source { folder, head });
            }
        }
        Ok(())
    }

    /// Fills the chunk. Returns it when it is full or nothing more is there now. Returns damage
    /// before that. Returns `None` if there is nothing.
    fn next(&mut self) -> Result<Option<Received>, TransportError> {
        let follows = self.config.follow;
        while let Some((place, until)) = self.earliest() {
            let Some(source) = self.folders.get_mut(place) else {
                break;
            };
            let step = source.folder.cut(&mut self.chunk, until, follows);
            match step.map_err(|error| failed("read", source.folder.path(), error))? {
                FolderStep::Later(timestamp) => source.head = Head::At(timestamp),
                FolderStep::End => source.head = Head::Missing,
                FolderStep::Full => {
                    if let Some(chunk) = self.hand_out() {
                        return Ok(Some(chunk));
                    }
                }
                FolderStep::Bad(bad) => return self.report(place, bad),
            }
        }
        let chunk = self.hand_out();
        self.is_skipping = false;
        Ok(chunk)
    }

    /// Returns the folder with the earliest record, and the timestamp up to which no other folder
    /// has an earlier record. If timestamps are equal or missing, the records of the first folder
    /// come first: a missing timestamp is -1.
    fn earliest(&self) -> Option<(usize, i64)> {
        if let [only] = &*self.folders {
            return (only.head != Head::Missing).then_some((0, i64::MAX));
        }
        let unknown = self.folders.iter().position(|it| it.head == Head::Unknown);
        if let Some(unknown) = unknown {
            return Some((unknown, i64::MIN));
        }
        let heads = || (0_usize..).zip(&self.folders);
        let known = heads().filter_map(|(place, it)| match it.head {
            Head::At(timestamp) => Some((timestamp, place)),
            _ => None,
        });
        let (_, first) = known.clone().min()?;
        let others = known.filter(|(_, place)| *place != first);
        let until = others.map(|(timestamp, place)| match place < first {
            true => timestamp.saturating_sub(1),
            false => timestamp,
        });
        Some((first, until.fold(i64::MAX, i64::min)))
    }

    /// Makes a delivery of the chunk so far. Returns nothing if the chunk is empty or passed over.
    fn hand_out(&mut self) -> Option<Received> {
        let chunk = self.chunk.take()?;
        if self.is_skipping {
            return None;
        }
        let (meta, bytes) = chunk.for_every_consumer(&self.catalog, &mut self.next);
        self.pending.push_chunk(Delivery {
            token: Token(0),
            bytes: bytes.into(),
            meta: Some(meta),
            origin: Origin::of_chunk(&self.endpoint, &meta.identity),
            redelivered: false,
            attempts: 0,
        });
        self.pending.reached(self.position());
        self.pending.deliver()
    }

    fn report(&mut self, place: usize, bad: BadPart) -> Result<Option<Received>, TransportError> {
        let file = self.folders.get(place).map_or("", |it| it.folder.file());
        if self.config.stops_at_bad_record {
            let (endpoint, class) = (self.endpoint.clone(), RetryClass::Final);
            let error = TransportError::caused_by("read", endpoint, class, WrongData(bad.reason));
            self.stopped = Some(error.again());
            return Err(error);
        }
        self.pending.push_damaged(Damaged {
            token: None,
            bytes: bad.bytes,
            origin: Origin {
                endpoint: self.endpoint.clone(),
                lane: file.into(),
                position: bad.offset,
            },
            reason: bad.reason,
            peer: None,
        });
        Ok(self.pending.deliver())
    }

    /// Returns the position after all records in chunks; it is empty if no position is stored.
    fn position(&self) -> LogPosition {
        let mut position = LogPosition::default();
        if self.config.position_file.is_some() {
            for source in &self.folders {
                let name = source.folder.name().into();
                position.folders.insert(name, source.folder.position());
            }
        }
        position
    }

    /// Saves the position after the last chunk that is settled together with all chunks before it.
    /// Waits [`SAVE_EVERY`] between two saves unless `now` is set.
    fn save(&mut self, now: bool) -> Result<(), TransportError> {
        let Some(file) = &self.config.position_file else {
            return Ok(());
        };
        let begun = Instant::now();
        if !now && begun < self.next_save {
            return Ok(());
        }
        if self.settled != self.saved {
            let of = |name: &str| self.folders.iter().find(|it| it.folder.name() == name);
            let read = |name: &str| of(name).map(|source| source.folder.read());
            let saved = self.settled.save(file, read);
            saved.map_err(|error| failed("save the position in", file, error))?;
            self.saved.clone_from(&self.settled);
        }
        // The position of very many files takes its time.
        self.next_save = begun + SAVE_EVERY.max(begun.elapsed() * 20);
        Ok(())
    }
}

impl ChunkReader for KiekerLogReader {
    fn capability(&self) -> &ReaderCapability {
        &self.capability
    }

    fn set_demand(&mut self, chunks: usize) {
        self.demand = chunks;
    }

    fn receive(&mut self, by: Instant) -> Result<Received, TransportError> {
        if let Some(stopped) = &self.stopped {
            return Err(stopped.again());
        }
        loop {
            let has_demand = self.pending.handed_out() < self.demand;
            if has_demand {
                if let Some(received) = self.pending.deliver() {
                    return Ok(received);
                }
                if let Some(received) = self.next()? {
                    self.save(false)?;
                    return Ok(received);
                }
                if self.pending.is_empty() {
                    self.settled = self.position();
                    self.save(true)?;
                    if !self.config.follow {
                        return Ok(Received::End);
                    }
                }
            }
            self.save(false)?;
            let left = time_left(by);
            if left.is_zero() {
                return Ok(Received::Idle);
            }
            if !(self.config.follow && has_demand) {
                thread::park_timeout(left);
                continue;
            }
            thread::park_timeout(POLL.min(left));
            self.look_for_folders()?;
            for source in &mut self.folders {
                source.head = Head::Unknown;
            }
        }
    }

    fn settle(&mut self, token: Token, verdict: Verdict) -> Result<Settled, TransportError> {
        let settled = self.pending.settle(token, verdict);
        self.settled.add(self.pending.take_settled());
        self.save(false)?;
        Ok(settled)
    }

    fn waits_for(&self) -> Option<&'static str> {
        self.folders.is_empty().then_some("log")
    }

    fn close(mut self: Box<Self>, _by: Instant) -> ReaderCloseReport {
        ReaderCloseReport {
            error: self.save(true).err(),
            unsettled: self.pending.handed_out(),
            unreported: 0,
        }
    }
}

/// Wraps an error of the operating system.
fn failed(operation: &'static str, path: &Path, error: io::Error) -> TransportError {
    let endpoint = path.display().to_string();
    TransportError::caused_by(operation, endpoint, RetryClass::Final, error)
}
