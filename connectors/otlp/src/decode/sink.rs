//! Collects the records of a request, and makes chunks of them.

use std::collections::BTreeMap;

use baler_common::container::{ChunkHeader, ChunkSerializer as _, EncodeError, NativeSerializer};
use baler_common::record::{BatchBuilder, PushError};
use baler_common::transport::{ChunkIdentity, ChunkMeta, ContainerKind};

use crate::error::Malformed;
use crate::limits::MAX_CHUNK_BYTES;
use crate::types::{Resource, Scope, Telemetry};

/// A batch with this many records, or bytes, is full. The last record may go beyond.
const FULL_RECORDS: usize = 8_192;
const FULL_BYTES: usize = 4 << 20;

/// The records that were not taken, by reason.
pub(crate) type Rejected = BTreeMap<Malformed, u64>;

/// A chunk of a request.
#[derive(Debug)]
pub(crate) struct RequestChunk {
    pub(crate) meta: ChunkMeta,
    pub(crate) bytes: Vec<u8>,
}

/// Collects the records of a request, and makes chunks of them.
#[derive(Debug)]
pub(crate) struct Sink {
    resource: Resource,
    scope: Scope,
    /// Why the records of the present resource or scope are not taken, if they are not.
    bad_resource: Option<Malformed>,
    bad_scope: Option<Malformed>,
    batch: BatchBuilder,
    serializer: NativeSerializer,
    /// The identity of the next chunk.
    next: ChunkIdentity,
    chunks: Vec<RequestChunk>,
    rejected: Rejected,
}

impl Sink {
    /// Creates a sink whose first chunk has this identity.
    pub(crate) fn new(next: ChunkIdentity) -> Self {
        Self {
            resource: Resource::default(),
            scope: Scope::default(),
            bad_resource: None,
            bad_scope: None,
            batch: BatchBuilder::new(),
            serializer: NativeSerializer::default(),
            next,
            chunks: Vec::new(),
            rejected: Rejected::new(),
        }
    }

    pub(super) fn set_resource(&mut self, resource: Result<Resource, Malformed>) {
        self.bad_resource = resource.as_ref().err().copied();
        self.resource = resource.unwrap_or_default();
    }

    pub(super) fn set_scope(&mut self, scope: Result<Scope, Malformed>) {
        self.bad_scope = scope.as_ref().err().copied();
        self.scope = scope.unwrap_or_default();
    }

    /// Adds a record, which has no source yet.
    pub(super) fn push(&mut self, record: Result<Telemetry, Malformed>) {
        let bad_source = self.bad_resource.or(self.bad_scope);
        match bad_source.map_or(record, Err) {
            Ok(record) => self.add(record),
            Err(malformed) => self.reject(malformed, 1),
        }
    }

    fn add(&mut self, mut record: Telemetry) {
        self.exchange_source(&mut record);
        let pushed = self.push_to_batch(&record);
        self.exchange_source(&mut record);
        if pushed.is_err() {
            self.reject(Malformed::Size, 1);
        }
        if self.batch.len() >= FULL_RECORDS || self.batch.estimated_bytes() >= FULL_BYTES {
            self.seal();
        }
    }

    /// Lends the record the source, or takes it back. Copies would cost more than the rest.
    fn exchange_source(&mut self, record: &mut Telemetry) {
        let (resource, scope) = record.source();
        std::mem::swap(resource, &mut self.resource);
        std::mem::swap(scope, &mut self.scope);
    }

    fn push_to_batch(&mut self, record: &Telemetry) -> Result<(), PushError> {
        match record {
            Telemetry::ExponentialHistogram(record) => self.batch.push(record),
            Telemetry::Gauge(record) => self.batch.push(record),
            Telemetry::Histogram(record) => self.batch.push(record),
            Telemetry::Log(record) => self.batch.push(record),
            Telemetry::Span(record) => self.batch.push(record),
            Telemetry::Sum(record) => self.batch.push(record),
            Telemetry::Summary(record) => self.batch.push(record),
        }
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

    /// Returns the chunks, the records that are in none, and the identity of the next chunk.
    pub(crate) fn finish(mut self) -> (Vec<RequestChunk>, Rejected, ChunkIdentity) {
        if !self.batch.is_empty() {
            self.seal();
        }
        (self.chunks, self.rejected, self.next)
    }
}
