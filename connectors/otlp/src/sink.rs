//! Collects the records of a request, and makes chunks of them.

use std::collections::BTreeMap;
use std::mem;

use baler_common::container::{ChunkHeader, ChunkSerializer as _, EncodeError, NativeSerializer};
use baler_common::record::BatchBuilder;
use baler_common::transport::{ChunkIdentity, ChunkMeta, ContainerKind};

use crate::error::Malformed;
use crate::limits::MAX_CHUNK_BYTES;
use crate::telemetry::each;
use crate::types::{Resource, Scope, Telemetry};

/// A batch with this many records is full.
const FULL_RECORDS: usize = 8_192;

/// The most work for one request, in bytes that are converted, and what a record costs beside its
/// bytes. A source counts again for each of its records. Of hostile bytes, this takes some seconds.
const MAX_WORK: usize = 256 << 20;
const RECORD_WORK: usize = 256;

/// The most bytes in the chunks of one request.
const MAX_CHUNKS_BYTES: usize = 256 << 20;

/// The records that were not taken, by reason.
pub(crate) type Rejected = BTreeMap<Malformed, u64>;

/// A chunk of a request.
#[derive(Debug)]
pub(crate) struct RequestChunk {
    pub(crate) meta: ChunkMeta,
    pub(crate) bytes: Vec<u8>,
}

/// The resource or the scope of the records that follow.
#[derive(Debug, Default)]
pub(crate) struct Head<P> {
    /// The part of each record.
    pub(crate) part: P,
    /// The length of its message.
    pub(crate) bytes: usize,
    /// Why the records are not taken, if they are not.
    pub(crate) malformed: Option<Malformed>,
}

/// Collects the records of a request, and makes chunks of them.
#[derive(Debug)]
pub(crate) struct Sink {
    pub(crate) resource: Head<Resource>,
    pub(crate) scope: Head<Scope>,
    /// The length of the part of the present metric that its data points share.
    pub(crate) metric_bytes: usize,
    work: usize,
    pub(crate) max_work: usize,
    chunks_bytes: usize,
    /// A batch with this many bytes is full. The last record may go beyond.
    max_batch_bytes: usize,
    batch: BatchBuilder,
    serializer: NativeSerializer,
    /// The identity of the next chunk, and of the first one of the present request.
    next: ChunkIdentity,
    first: ChunkIdentity,
    chunks: Vec<RequestChunk>,
    rejected: Rejected,
}

impl Sink {
    /// Creates a sink whose first chunk has this identity. A chunk is full with this many bytes.
    pub(crate) fn new(next: ChunkIdentity, max_batch_bytes: usize) -> Self {
        Self {
            resource: Head::default(),
            scope: Head::default(),
            metric_bytes: 0,
            work: 0,
            max_work: MAX_WORK,
            chunks_bytes: 0,
            max_batch_bytes,
            batch: BatchBuilder::new(),
            serializer: NativeSerializer::default(),
            next,
            first: next,
            chunks: Vec::new(),
            rejected: Rejected::new(),
        }
    }

    /// Begins a request: removes what an earlier one left that could not be read to its end. The
    /// memory stays, because to get it anew takes a tenth of the time.
    pub(crate) fn begin(&mut self) {
        self.batch.clear();
        self.chunks.clear();
        self.rejected.clear();
        self.next = self.first;
        (self.work, self.chunks_bytes) = (0, 0);
    }

    /// Counts work.
    pub(crate) fn charge(&mut self, bytes: usize) {
        self.work += bytes;
    }

    /// Whether the request may have more records.
    pub(crate) fn has_room(&self) -> bool {
        self.work <= self.max_work && self.chunks_bytes <= MAX_CHUNKS_BYTES
    }

    /// Adds a record, which has no source yet.
    pub(crate) fn push(&mut self, record: Result<Telemetry, Malformed>) {
        let bad_source = self.resource.malformed.or(self.scope.malformed);
        match bad_source.map_or(record, Err) {
            Ok(_) if !self.has_room() => self.reject(Malformed::Amount, 1),
            Ok(record) => {
                let shared = self.resource.bytes + self.scope.bytes + self.metric_bytes;
                self.charge(shared + RECORD_WORK);
                self.add(record);
            }
            Err(malformed) => self.reject(malformed, 1),
        }
    }

    fn add(&mut self, mut record: Telemetry) {
        self.exchange_source(&mut record);
        let pushed = each!(&record, it => self.batch.push(it));
        self.exchange_source(&mut record);
        if pushed.is_err() {
            self.reject(Malformed::Size, 1);
        }
        if self.batch.len() >= FULL_RECORDS || self.batch.estimated_bytes() >= self.max_batch_bytes
        {
            self.seal();
        }
    }

    /// Lends the record the source, or takes it back. Copies would cost more than the rest.
    fn exchange_source(&mut self, record: &mut Telemetry) {
        let (resource, scope) = record.source();
        mem::swap(resource, &mut self.resource.part);
        mem::swap(scope, &mut self.scope.part);
    }

    fn reject(&mut self, malformed: Malformed, records: u64) {
        *self.rejected.entry(malformed).or_default() += records;
    }

    /// Makes a chunk of the batch.
    fn seal(&mut self) {
        let records = self.batch.len();
        match self.serialized() {
            Ok(bytes) if bytes.len() <= MAX_CHUNK_BYTES => {
                let meta = ChunkMeta {
                    container: ContainerKind::Native,
                    records: u32::try_from(records).unwrap_or(u32::MAX),
                    identity: self.next,
                };
                self.next.sequence += 1;
                self.chunks_bytes += bytes.len();
                self.chunks.push(RequestChunk { meta, bytes });
            }
            // Small records cannot become such a large chunk.
            _ => self.reject(Malformed::Size, records as u64),
        }
        self.batch.clear();
    }

    fn serialized(&mut self) -> Result<Vec<u8>, EncodeError> {
        let mut bytes = Vec::new();
        let header = ChunkHeader::new(self.next);
        self.serializer
            .serialize(self.batch.batch(), &header, &mut bytes)?;
        Ok(bytes)
    }

    /// Ends the request. Returns its chunks, and the number of records that are in none.
    pub(crate) fn finish(&mut self) -> (Vec<RequestChunk>, Rejected) {
        if !self.batch.is_empty() {
            self.seal();
        }
        self.first = self.next;
        let rejected = mem::take(&mut self.rejected);
        (mem::take(&mut self.chunks), rejected)
    }
}
