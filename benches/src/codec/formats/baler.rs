//! Baler's own container and Kieker's.

use std::hint::black_box;

use baler_common::container::{
    ChunkDecoder, ChunkHeader, ChunkSerializer, Compression, NativeSerializer,
};
use baler_common::record::RecordBatch;
use baler_common::transport::{ChunkIdentity, Epoch, ProducerId};
use baler_connector_kieker::container::{self, KiekerSerializer};
use baler_connector_kieker::types::{OperationExecutionRecord, WELL_KNOWN_TYPES};
use baler_rig::workload::PlainCall;

use super::super::piece::Piece;
use super::{Format, cannot_decode, cannot_encode};
use crate::Failure;

/// One of the containers.
pub(in super::super) struct Baler {
    serializer: Box<dyn ChunkSerializer>,
    decoder: ChunkDecoder,
    /// The last decoded batch. The decoder reuses its memory.
    decoded: RecordBatch,
    header: ChunkHeader,
}

impl Baler {
    pub(in super::super) fn columnar(compression: Compression) -> Result<Self, Failure> {
        let serializer = NativeSerializer::new(compression).map_err(cannot_encode())?;
        Ok(Self::new(Box::new(
            serializer.with_well_known_types(&WELL_KNOWN_TYPES),
        )))
    }

    pub(in super::super) fn kieker() -> Self {
        Self::new(Box::new(KiekerSerializer::new()))
    }

    fn new(serializer: Box<dyn ChunkSerializer>) -> Self {
        let identity = ChunkIdentity {
            producer: ProducerId::new(0x0123_4567_89ab_cdef_0123_4567_89ab_cdef),
            epoch: Epoch {
                start_unix_ns: 1_700_000_000_000_000_000,
                random: 0x0123_4567,
            },
            lane: 0,
            // The number of a chunk in the middle of an epoch: two bytes.
            sequence: 1_000,
        };
        Self {
            decoder: container::decoder(),
            serializer,
            decoded: RecordBatch::default(),
            header: ChunkHeader::new(identity),
        }
    }

    fn read(&mut self, chunk: &[u8]) -> Result<&RecordBatch, Failure> {
        let decoded = self.decoder.decode(chunk).map_err(cannot_decode())?;
        self.decoded = decoded.batch;
        Ok(&self.decoded)
    }
}

impl Format for Baler {
    fn encode(&mut self, piece: &Piece<'_>, out: &mut Vec<u8>) -> Result<(), Failure> {
        let written = self.serializer.serialize(&piece.batch, &self.header, out);
        written.map(drop).map_err(cannot_encode())
    }

    fn decode(&mut self, chunk: &[u8]) -> Result<usize, Failure> {
        Ok(black_box(self.read(chunk)?).len())
    }

    fn has(&mut self, chunk: &[u8], piece: &Piece<'_>) -> Result<bool, Failure> {
        let records: Result<Vec<OperationExecutionRecord>, _> = self.read(chunk)?.read().collect();
        let records = records.map_err(cannot_decode())?;
        let calls = records.iter().map(PlainCall::from);
        Ok(calls.eq(piece.calls.iter().copied()))
    }
}
