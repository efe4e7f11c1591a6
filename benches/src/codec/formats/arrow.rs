//! Arrow's IPC stream: schema, dictionaries, one record batch.

use std::hint::black_box;
use std::sync::Arc;

use arrow_array::types::UInt16Type;
use arrow_array::{
    ArrayRef, DictionaryArray, Int32Array, Int64Array, RecordBatch, TimestampNanosecondArray,
};
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::ArrowError;
use baler_rig::workload::PlainCall;

use super::super::piece::Piece;
use super::{Format, cannot_decode, cannot_encode};
use crate::Failure;

/// Written and read by `arrow-ipc`, with a dictionary for each column of strings.
pub(in super::super) struct Arrow;

/// These calls as Arrow's columns.
pub(in super::super) fn arrow_batch(calls: &[PlainCall<'_>]) -> Result<RecordBatch, ArrowError> {
    let calls = || calls.iter();
    RecordBatch::try_from_iter([
        (
            "operationSignature",
            strings(calls().map(|it| it.operation_signature)),
        ),
        ("sessionId", strings(calls().map(|it| it.session_id))),
        ("traceId", longs(calls().map(|it| it.trace_id))),
        ("tin", times(calls().map(|it| it.tin))),
        ("tout", times(calls().map(|it| it.tout))),
        ("hostname", strings(calls().map(|it| it.hostname))),
        ("eoi", ints(calls().map(|it| it.eoi))),
        ("ess", ints(calls().map(|it| it.ess))),
    ])
}

fn strings<'a>(values: impl Iterator<Item = &'a str>) -> ArrayRef {
    Arc::new(DictionaryArray::<UInt16Type>::from_iter(values))
}

fn longs(values: impl Iterator<Item = i64>) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(values))
}

fn times(values: impl Iterator<Item = i64>) -> ArrayRef {
    Arc::new(TimestampNanosecondArray::from_iter_values(values))
}

fn ints(values: impl Iterator<Item = i32>) -> ArrayRef {
    Arc::new(Int32Array::from_iter_values(values))
}

fn write(batch: &RecordBatch, out: &mut Vec<u8>) -> Result<(), ArrowError> {
    let mut writer = StreamWriter::try_new(out, &batch.schema())?;
    writer.write(batch)?;
    writer.finish()
}

fn read(chunk: &[u8]) -> Result<Vec<RecordBatch>, Failure> {
    let batches = StreamReader::try_new(chunk, None).and_then(Iterator::collect);
    batches.map_err(cannot_decode())
}

impl Format for Arrow {
    fn encode(&mut self, piece: &Piece<'_>, out: &mut Vec<u8>) -> Result<(), Failure> {
        write(&piece.arrow, out).map_err(cannot_encode())
    }

    fn decode(&mut self, chunk: &[u8]) -> Result<usize, Failure> {
        let batches = black_box(read(chunk)?);
        Ok(batches.iter().map(RecordBatch::num_rows).sum())
    }

    fn has(&mut self, chunk: &[u8], piece: &Piece<'_>) -> Result<bool, Failure> {
        Ok(matches!(read(chunk)?.as_slice(), [batch] if *batch == piece.arrow))
    }
}
