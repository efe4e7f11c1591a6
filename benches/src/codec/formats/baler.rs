//! The containers that Baler writes: its own and Kieker's.

use std::hint::black_box;

use baler_common::container::{
    ChunkDecoder, ChunkHeader, ChunkSerializer, Compression, KiekerSerializer, NativeSerializer,
};
use baler_common::record::{BatchBuilder, Column, RecordBatch};
use baler_common::transport::{ChunkIdentity, Epoch, ProducerId};
use baler_rig::recording::PlainCall;
use baler_rig::workload::Executions;

use super::super::piece::Piece;
use super::{Calls, Format, cannot_decode, cannot_encode};
use crate::failure::Failure;

/// One of the containers.
pub(in super::super) struct Baler {
    serializer: Box<dyn ChunkSerializer>,
    decoder: ChunkDecoder,
    /// What was decoded last; its memory is given back for the next.
    decoded: RecordBatch,
    header: ChunkHeader,
    builder: BatchBuilder,
    executions: Executions,
}

impl Baler {
    pub(in super::super) fn columnar(
        compression: Compression,
        executions: Executions,
    ) -> Result<Self, Failure> {
        let serializer = NativeSerializer::new(compression).map_err(cannot_encode())?;
        Ok(Self::new(Box::new(serializer), executions))
    }

    pub(in super::super) fn kieker(executions: Executions) -> Self {
        Self::new(Box::new(KiekerSerializer::new()), executions)
    }

    fn new(serializer: Box<dyn ChunkSerializer>, executions: Executions) -> Self {
        let identity = ChunkIdentity {
            producer: ProducerId::new(0x0123_4567_89ab_cdef_0123_4567_89ab_cdef),
            epoch: Epoch {
                start_unix_ns: 1_700_000_000_000_000_000,
                random: 0x0123_4567,
            },
            lane: 0,
            // That of a chunk in the middle of an epoch: two bytes.
            sequence: 1_000,
        };
        Self {
            serializer,
            decoder: ChunkDecoder::default(),
            decoded: RecordBatch::default(),
            header: ChunkHeader::new(identity),
            builder: BatchBuilder::new(),
            executions,
        }
    }
}

impl Format for Baler {
    type Decoded<'a> = &'a RecordBatch;

    fn encode(&mut self, piece: &Piece<'_>, out: &mut Vec<u8>) -> Result<(), Failure> {
        let written = self.serializer.serialize(&piece.batch, &self.header, out);
        written.map(drop).map_err(cannot_encode())
    }

    fn decode<'a>(&'a mut self, chunk: &'a [u8]) -> Result<&'a RecordBatch, Failure> {
        self.decoder.reuse(std::mem::take(&mut self.decoded));
        let decoded = self.decoder.decode(chunk).map_err(cannot_decode())?;
        self.decoded = decoded.batch;
        Ok(&self.decoded)
    }

    fn encode_records(&mut self, piece: &Piece<'_>, out: &mut Vec<u8>) -> Result<bool, Failure> {
        for call in piece.calls {
            let pushed = self.builder.push(self.executions.of(call));
            pushed.map_err(cannot_encode())?;
        }
        let batch = self.builder.take();
        let written = self.serializer.serialize(&batch, &self.header, out);
        written.map(|_| true).map_err(cannot_encode())
    }

    fn decode_rows(&mut self, chunk: &[u8]) -> Result<Option<usize>, Failure> {
        let batch = self.decode(chunk)?;
        let mut rows = 0;
        each(batch, |row| {
            black_box(row);
            rows += 1;
        })?;
        Ok(Some(rows))
    }
}

impl Calls for &RecordBatch {
    fn count(&self) -> usize {
        self.len()
    }

    fn each(&self, see: &mut dyn FnMut(PlainCall<'_>)) -> Result<(), Failure> {
        each(self, see)
    }
}

/// Shows each row, made of the columns of Kieker's fields by their positions.
fn each<'a>(batch: &'a RecordBatch, mut see: impl FnMut(PlainCall<'a>)) -> Result<(), Failure> {
    let [table] = batch.tables() else {
        return Err(Failure::new("there is no table, or more than one"));
    };
    let other = || Failure::new("the records are of another type");
    let numbers = |position: usize| table.columns().get(position).and_then(Column::signed);
    let ids = |position: usize| table.columns().get(position).and_then(Column::string_ids);
    let numbers = |position| numbers(position).ok_or_else(other);
    let ids = |position| ids(position).ok_or_else(other);
    // Each string is cut out of the table once.
    let mut strings = Vec::with_capacity(batch.strings().len());
    strings.extend(batch.strings().iter());
    let string = |id: u32| {
        usize::try_from(id)
            .ok()
            .and_then(|id| strings.get(id).copied())
    };
    let texts = ids(0)?.iter().zip(ids(1)?).zip(ids(5)?);
    let times = numbers(2)?.iter().zip(numbers(3)?).zip(numbers(4)?);
    let places = numbers(6)?.iter().zip(numbers(7)?);
    let rows = texts.zip(times).zip(places);
    for ((((operation, session), host), ((trace_id, tin), tout)), (eoi, ess)) in rows {
        // Found first, so that the row is made where it is looked at, and not copied there.
        let strings = (string(*operation), string(*session), string(*host));
        let places = (i32::try_from(*eoi), i32::try_from(*ess));
        let ((Some(operation_signature), Some(session_id), Some(hostname)), (Ok(eoi), Ok(ess))) =
            (strings, places)
        else {
            return Err(Failure::new("a record is of another type"));
        };
        see(PlainCall {
            operation_signature,
            session_id,
            trace_id: *trace_id,
            tin: *tin,
            tout: *tout,
            hostname,
            eoi,
            ess,
        });
    }
    Ok(())
}
