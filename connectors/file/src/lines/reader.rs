//! Makes self-contained chunks of lines.
//!
//! files or a pipe -> lines -> rows -> batch -> native chunk; the position follows the settled
//! chunks

use std::collections::HashMap;
use std::io;
use std::time::{Duration, Instant};

use crate::follow::{FileKey, Fill, Mark, Pending};
use baler_common::container::NativeSerializer;
use baler_common::transport::{
    ChunkIdentity, ChunkMeta, ChunkReader, ContainerKind, Delivery, Order, Origin,
    ReaderCapability, ReaderCloseReport, ReaderStats, Received, Settled, Token, TransportError,
    Verdict,
};

use crate::lines::config::LinesConfig;
use crate::lines::cutter::Cutter;
use crate::lines::error::failed;
use crate::lines::headers::first_identity;
use crate::lines::input::Input;
use crate::lines::line::serialized;

/// The shortest time between two positions that are saved while lines come.
const SAVE_EVERY: Duration = Duration::from_secs(1);

/// Reads lines of files, of a pipe or of standard input, and makes chunks of them.
///
/// In memory it keeps one part of the input, one batch, the types of its lines, and the chunks that
/// are not settled. While it follows files, a thread looks at them, so that unread ones stay
/// readable.
#[derive(Debug)]
pub struct LinesReader {
    config: LinesConfig,
    capability: ReaderCapability,
    endpoint: Box<str>,
    input: Input,
    cutter: Cutter,
    serializer: NativeSerializer,
    /// The identity of the next chunk.
    next: ChunkIdentity,
    demand: usize,
    pending: Pending<HashMap<FileKey, Mark>>,
    last_save: Option<Instant>,
}

impl LinesReader {
    /// Opens the files, the pipe or standard input.
    ///
    /// # Errors
    ///
    /// The position cannot be read. If nothing is followed, also: there is no such file, or it
    /// cannot be read.
    pub fn open(config: LinesConfig) -> Result<Self, TransportError> {
        let endpoint: Box<str> = config.endpoint().into();
        let input = Input::open(&config).map_err(|error| failed("read", &endpoint, error))?;
        let mut capability = ReaderCapability::new(config.scheme(), Order::PerLane);
        capability.ends = !config.follow;
        Ok(Self {
            capability,
            input,
            cutter: Cutter::new(&config, &endpoint),
            serializer: NativeSerializer::default(),
            next: first_identity(&endpoint),
            demand: usize::MAX,
            pending: Pending::default(),
            last_save: None,
            endpoint,
            config,
        })
    }

    /// Cuts lines until a chunk is full, or nothing more is there now, and makes deliveries of
    /// them. Returns what the input said last.
    fn read(&mut self) -> Result<Fill, TransportError> {
        let mut input = self.input.lock();
        let cut = self.cutter.cut(&mut input);
        for event in input.events() {
            self.cutter.happened(event);
        }
        drop(input);
        let fill = cut.map_err(|error| failed("read", &self.endpoint, error))?;
        for damaged in self.cutter.take_damaged() {
            self.pending.push_damaged(damaged);
        }
        if !self.cutter.batch.is_empty() {
            let chunk = self.chunk()?;
            self.pending.push_chunk(chunk);
        }
        // Also past lines that are neither records nor bad.
        self.pending
            .reached(std::mem::take(&mut self.cutter.places));
        Ok(fill)
    }

    /// Makes a chunk of the batch.
    #[expect(clippy::expect_used, reason = "a batch is full at 1,024 records")]
    fn chunk(&mut self) -> Result<Delivery, TransportError> {
        let batch = &mut self.cutter.batch;
        let records = batch.len();
        let bytes = serialized(&mut self.serializer, batch, self.next);
        let bytes = bytes.map_err(|error| failed("read", &self.endpoint, io::Error::other(error)));
        batch.clear();
        let meta = ChunkMeta {
            container: ContainerKind::Native,
            records: u32::try_from(records).expect("a batch is full at 1,024 records"),
            identity: self.next,
        };
        self.next.sequence += 1;
        Ok(Delivery {
            token: Token(0),
            bytes: bytes?.into(),
            meta: Some(meta),
            origin: Origin::of_chunk(&self.endpoint, &meta.identity),
            redelivered: false,
            attempts: 0,
        })
    }

    /// Saves the position of what is settled, together with all before it. Waits [`SAVE_EVERY`]
    /// between two saves unless `now` is set.
    fn save(&mut self, now: bool) -> Result<(), TransportError> {
        let is_recent = |last: Instant| last.elapsed() < SAVE_EVERY;
        if !now && self.last_save.is_some_and(is_recent) {
            return Ok(());
        }
        let mut input = self.input.lock();
        input.settle(self.pending.take_settled());
        let file = self.config.position_file.as_ref();
        let Some(file) = file.filter(|_| input.has_moved()) else {
            return Ok(());
        };
        let begun = Instant::now();
        let saved = input.save();
        // The position of very many files takes its time.
        self.last_save = Some(Instant::now() + begun.elapsed() * 20);
        let file = file.display().to_string();
        saved.map_err(|error| failed("save the position in", &file, error))
    }
}

impl ChunkReader for LinesReader {
    fn capability(&self) -> &ReaderCapability {
        &self.capability
    }

    fn set_demand(&mut self, chunks: usize) {
        self.demand = chunks;
    }

    fn receive(&mut self, by: Instant) -> Result<Received, TransportError> {
        // The position knows the files before their lines are settled. So a file that is removed is
        // missed, even if nobody read it.
        self.save(false)?;
        loop {
            let has_demand = self.pending.handed_out() < self.demand;
            let mut may_come = has_demand;
            if has_demand {
                if let Some(received) = self.pending.deliver() {
                    return Ok(received);
                }
                let fill = self.read()?;
                if let Some(received) = self.pending.deliver() {
                    self.save(false)?;
                    return Ok(received);
                }
                may_come = fill != Fill::End;
                if self.pending.is_empty() {
                    self.save(true)?;
                    if fill == Fill::End {
                        return Ok(Received::End);
                    }
                }
            }
            self.save(false)?;
            let now = Instant::now();
            if now >= by {
                return Ok(Received::Idle);
            }
            // At the end, or without demand, only verdicts of the owner change anything.
            if may_come {
                let waited = self.input.wait(by - now);
                waited.map_err(|error| failed("read", &self.endpoint, error))?;
            } else {
                std::thread::park_timeout(by - now);
            }
        }
    }

    fn settle(&mut self, token: Token, verdict: Verdict) -> Result<Settled, TransportError> {
        let settled = self.pending.settle(token, verdict);
        self.save(false)?;
        Ok(settled)
    }

    fn waits_for(&self) -> Option<&'static str> {
        self.input.waits_for()
    }

    fn stats(&self) -> ReaderStats {
        let mut stats = ReaderStats::default();
        stats.counts = self
            .cutter
            .counts
            .iter()
            .map(|(name, count)| (*name, *count))
            .collect();
        stats
    }

    fn close(mut self: Box<Self>, _by: Instant) -> ReaderCloseReport {
        ReaderCloseReport {
            error: self.save(true).err(),
            unsettled: self.pending.handed_out(),
            unreported: 0,
        }
    }
}
