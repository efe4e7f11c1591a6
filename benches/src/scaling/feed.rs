//! Ready-made chunks into a broker.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use baler_common::container::{ChunkHeader, ChunkSerializer as _, NativeSerializer};
use baler_common::record::BatchBuilder;
use baler_common::transport::{
    Chunk, ChunkIdentity, ChunkMeta, ChunkWriter, ContainerKind, Epoch, Notify, Outcome,
    ProducerId, RejectReason,
};
use baler_rig::checksum::Checksum;
use baler_rig::workload::{Executions, Workload};
use bytes::Bytes;

use crate::endpoint;
use crate::failure::Failure;

/// How many different chunks there are; they come again and again.
const DIFFERENT: usize = 64;

/// How long the broker may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// Chunks that were made before anything is measured.
#[derive(Debug)]
pub(super) struct Chunks {
    chunks: Vec<(Bytes, Checksum)>,
    records: usize,
}

impl Chunks {
    pub(super) fn new(seed: u64, records: usize) -> Result<Self, Failure> {
        let mut workload = Workload::new(seed);
        let mut executions = Executions::new(&workload);
        let mut builder = BatchBuilder::new();
        let mut serializer = NativeSerializer::default();
        let mut chunks = Vec::new();
        for _ in 0..DIFFERENT {
            for call in workload.by_ref().take(records) {
                let pushed = builder.push(executions.of(&call));
                pushed.map_err(Failure::cannot("make a batch"))?;
            }
            let batch = builder.take();
            let mut checksum = Checksum::default();
            checksum.add(&batch);
            let mut bytes = Vec::new();
            serializer
                .serialize(&batch, &ChunkHeader::new(identity(0)), &mut bytes)
                .map_err(Failure::cannot("make a chunk"))?;
            chunks.push((bytes.into(), checksum));
        }
        Ok(Self { chunks, records })
    }

    /// What so many of them hold together.
    pub(super) fn checksum(&self, count: u64) -> Checksum {
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        let mut sum = Checksum::default();
        for (_, checksum) in self.chunks.iter().cycle().take(count) {
            sum.merge(*checksum);
        }
        sum
    }

    /// Bytes of a chunk on average.
    pub(super) fn mean_bytes(&self) -> u64 {
        let bytes: usize = self.chunks.iter().map(|(bytes, _)| bytes.len()).sum();
        u64::try_from(bytes / self.chunks.len().max(1)).unwrap_or(u64::MAX)
    }

    fn get(&self, number: u64) -> Option<Chunk> {
        let index = usize::try_from(number).unwrap_or(usize::MAX) % self.chunks.len().max(1);
        let (bytes, _) = self.chunks.get(index)?;
        Some(Chunk {
            ticket: number,
            meta: ChunkMeta {
                container: ContainerKind::Native,
                records: u32::try_from(self.records).unwrap_or(u32::MAX),
                identity: identity(number),
            },
            bytes: bytes.clone(),
        })
    }
}

fn identity(sequence: u64) -> ChunkIdentity {
    ChunkIdentity {
        producer: ProducerId::new(1),
        epoch: Epoch {
            start_unix_ns: 1,
            random: 1,
        },
        lane: 0,
        sequence,
    }
}

/// Told that the writer has something.
#[derive(Default)]
struct Bell {
    rung: Mutex<bool>,
    changed: Condvar,
}

impl Notify for Bell {
    fn notify(&self) {
        *self.rung.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }
}

impl Bell {
    fn wait(&self, time: Duration) {
        let rung = self.rung.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.changed.wait_timeout_while(rung, time, |rung| !*rung);
        *waited.unwrap_or_else(PoisonError::into_inner).0 = false;
    }
}

/// Writes chunks without encoding anything: a connector's writer, driven by the caller.
pub(super) struct Feed {
    writer: Box<dyn ChunkWriter>,
    bell: Arc<Bell>,
    waiting: VecDeque<Chunk>,
    next: u64,
    confirmed: u64,
}

impl Feed {
    pub(super) fn open(uri: &str) -> Result<Self, Failure> {
        let mut writer = endpoint::writer(uri)?;
        let bell = Arc::new(Bell::default());
        writer.set_notify(Arc::clone(&bell) as Arc<dyn Notify>);
        writer
            .reopen(Instant::now() + PATIENCE)
            .map_err(Failure::cannot("open the writer"))?;
        Ok(Self {
            writer,
            bell,
            waiting: VecDeque::new(),
            next: 0,
            confirmed: 0,
        })
    }

    /// How many chunks were offered.
    pub(super) fn offered(&self) -> u64 {
        self.next - u64::try_from(self.waiting.len()).unwrap_or(0)
    }

    /// Offers chunks until there were so many, as far as the window goes; waits shortly for it.
    pub(super) fn offer(&mut self, chunks: &Chunks, until: u64) -> Result<(), Failure> {
        self.confirm()?;
        loop {
            let chunk = match self.waiting.pop_front() {
                Some(chunk) => chunk,
                None if self.next < until => {
                    let chunk = chunks.get(self.next);
                    self.next += 1;
                    chunk.ok_or_else(|| Failure::new("there are no chunks"))?
                }
                None => return Ok(()),
            };
            if let Err(rejected) = self.writer.offer(chunk) {
                self.waiting.push_front(rejected.chunk);
                return match rejected.reason {
                    RejectReason::Full => {
                        self.bell.wait(Duration::from_millis(1));
                        Ok(())
                    }
                    other => Err(Failure::new(format!("the feed broke: {other:?}"))),
                };
            }
        }
    }

    fn confirm(&mut self) -> Result<(), Failure> {
        let mut known = Vec::new();
        self.writer
            .confirmations(&mut known)
            .map_err(Failure::cannot("feed"))?;
        for confirmation in known {
            match confirmation.outcome {
                Outcome::Confirmed => self.confirmed += 1,
                other => return Err(Failure::new(format!("a chunk was not taken: {other:?}"))),
            }
        }
        Ok(())
    }

    /// Waits until everything is confirmed.
    pub(super) fn settle(&mut self) -> Result<(), Failure> {
        let by = Instant::now() + PATIENCE;
        while self.confirmed < self.offered() {
            if Instant::now() > by {
                return Err(Failure::new("the feed is not confirmed"));
            }
            self.bell.wait(Duration::from_millis(1));
            self.confirm()?;
        }
        Ok(())
    }
}
