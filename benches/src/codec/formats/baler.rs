//! Baler's own container and Kieker's.

use std::hint::black_box;

use baler_common::container::{
    ChunkDecoder, ChunkHeader, ChunkSerializer, Compression, NativeSerializer,
};
use baler_common::record::{Column, RecordBatch};
use baler_common::transport::{ChunkIdentity, Epoch, ProducerId};
use baler_connector_kieker::container::{self, KiekerSerializer};
use baler_connector_kieker::types::WELL_KNOWN_TYPES;
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

    fn rows(&mut self, chunk: &[u8]) -> Result<Option<usize>, Failure> {
        let mut rows = 0;
        each_row(self.read(chunk)?, |row| {
            black_box(row);
            rows += 1;
        })?;
        Ok(Some(rows))
    }

    fn has(&mut self, chunk: &[u8], piece: &Piece<'_>) -> Result<bool, Failure> {
        let (mut calls, mut are_equal) = (piece.calls.iter(), true);
        each_row(self.read(chunk)?, |row| {
            are_equal &= calls.next() == Some(&row);
        })?;
        Ok(are_equal && calls.next().is_none())
    }
}

/// Makes rows of the columns of Kieker's fields, which are found once.
fn each_row<'a>(batch: &'a RecordBatch, mut see: impl FnMut(PlainCall<'a>)) -> Result<(), Failure> {
    let other = || Failure::new("the records are of another type");
    let [table] = batch.tables() else {
        return Err(other());
    };
    let numbers = |name| table.column(name).and_then(Column::signed);
    let numbers = |name| numbers(name).ok_or_else(other);
    let ids = |name| table.column(name).and_then(Column::string_ids);
    let ids = |name| ids(name).ok_or_else(other);
    let strings: Vec<&str> = batch.strings().iter().collect();
    let text = |id: u32| strings[id as usize];
    let texts = ids("operationSignature")?
        .iter()
        .zip(ids("sessionId")?)
        .zip(ids("hostname")?);
    let times = numbers("traceId")?
        .iter()
        .zip(numbers("tin")?)
        .zip(numbers("tout")?);
    let places = numbers("eoi")?.iter().zip(numbers("ess")?);
    for ((((operation, session), host), ((trace_id, tin), tout)), (eoi, ess)) in
        texts.zip(times).zip(places)
    {
        let (Ok(eoi), Ok(ess)) = (i32::try_from(*eoi), i32::try_from(*ess)) else {
            return Err(other());
        };
        see(PlainCall {
            operation_signature: text(*operation),
            session_id: text(*session),
            trace_id: *trace_id,
            tin: *tin,
            tout: *tout,
            hostname: text(*host),
            eoi,
            ess,
        });
    }
    Ok(())
}
