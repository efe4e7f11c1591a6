//! The containers that Baler writes: its own and Kieker's.

use std::hint::black_box;

use baler_common::container::{
    ChunkDecoder, ChunkHeader, ChunkSerializer, Compression, Effort, KiekerSerializer,
    NativeSerializer,
};
use baler_common::record::{BatchBuilder, RecordBatch, Table};
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
    header: ChunkHeader,
    builder: BatchBuilder,
    executions: Executions,
}

impl Baler {
    pub(in super::super) fn columnar(
        compression: Compression,
        effort: Effort,
        executions: Executions,
    ) -> Result<Self, Failure> {
        let mut serializer = NativeSerializer::new(compression).map_err(cannot_encode())?;
        serializer.set_effort(effort);
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
            header: ChunkHeader::new(identity),
            builder: BatchBuilder::new(),
            executions,
        }
    }
}

impl Format for Baler {
    type Decoded<'a> = RecordBatch;

    fn encode(&mut self, piece: &Piece<'_>, out: &mut Vec<u8>) -> Result<(), Failure> {
        let written = self.serializer.serialize(&piece.batch, &self.header, out);
        written.map(drop).map_err(cannot_encode())
    }

    fn decode<'a>(&'a mut self, chunk: &'a [u8]) -> Result<RecordBatch, Failure> {
        let decoded = self.decoder.decode(chunk).map_err(cannot_decode())?;
        Ok(decoded.batch)
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
        batch.each(&mut |row| {
            black_box(row);
            rows += 1;
        })?;
        Ok(Some(rows))
    }
}

impl Calls for RecordBatch {
    fn count(&self) -> usize {
        self.len()
    }

    fn each(&self, see: &mut dyn FnMut(PlainCall<'_>)) -> Result<(), Failure> {
        let [table] = self.tables() else {
            return Err(Failure::new("there is no table, or more than one"));
        };
        let strings: Vec<&str> = self.strings().iter().collect();
        let columns = Columns::of(table, &strings);
        let columns = columns.ok_or_else(|| Failure::new("the records are of another type"))?;
        for row in 0..table.len() {
            let plain = columns.plain(row);
            see(plain.ok_or_else(|| Failure::new("a record is of another type"))?);
        }
        Ok(())
    }
}

/// The columns of calls, found once, by the positions of Kieker's fields.
struct Columns<'a> {
    strings: &'a [&'a str],
    operation_signature: &'a [u32],
    session_id: &'a [u32],
    trace_id: &'a [i64],
    tin: &'a [i64],
    tout: &'a [i64],
    hostname: &'a [u32],
    eoi: &'a [i64],
    ess: &'a [i64],
}

impl<'a> Columns<'a> {
    fn of(table: &'a Table, strings: &'a [&'a str]) -> Option<Self> {
        let numbers = |position: usize| table.columns().get(position)?.signed();
        let ids = |position: usize| table.columns().get(position)?.string_ids();
        Some(Self {
            strings,
            operation_signature: ids(0)?,
            session_id: ids(1)?,
            trace_id: numbers(2)?,
            tin: numbers(3)?,
            tout: numbers(4)?,
            hostname: ids(5)?,
            eoi: numbers(6)?,
            ess: numbers(7)?,
        })
    }

    fn plain(&self, row: usize) -> Option<PlainCall<'a>> {
        let number = |column: &[i64]| column.get(row).copied();
        let string = |column: &[u32]| {
            let id = usize::try_from(*column.get(row)?).ok()?;
            self.strings.get(id).copied()
        };
        Some(PlainCall {
            operation_signature: string(self.operation_signature)?,
            session_id: string(self.session_id)?,
            trace_id: number(self.trace_id)?,
            tin: number(self.tin)?,
            tout: number(self.tout)?,
            hostname: string(self.hostname)?,
            eoi: i32::try_from(number(self.eoi)?).ok()?,
            ess: i32::try_from(number(self.ess)?).ok()?,
        })
    }
}
