//! Arrow's IPC stream: schema, dictionaries, one record batch.

use std::hint::black_box;
use std::sync::Arc;

use arrow_array::types::UInt16Type;
use arrow_array::{
    Array, ArrayRef, DictionaryArray, Int32Array, Int64Array, RecordBatch, StringArray,
    TimestampNanosecondArray, UInt16Array,
};
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{ArrowError, DataType, Field, Schema, TimeUnit};

use super::super::piece::{Piece, TextColumn};
use super::super::recording::PlainCall;
use super::{Format, cannot_decode, cannot_encode, no_string};
use crate::Failure;

/// Written and read by `arrow-ipc`, with a dictionary for each column of strings.
pub(in super::super) struct Arrow {
    schema: Arc<Schema>,
}

impl Arrow {
    pub(in super::super) fn new() -> Self {
        let string = DataType::Dictionary(Box::new(DataType::UInt16), Box::new(DataType::Utf8));
        let time = DataType::Timestamp(TimeUnit::Nanosecond, None);
        let fields = [
            ("operationSignature", string.clone()),
            ("sessionId", string.clone()),
            ("traceId", DataType::Int64),
            ("tin", time.clone()),
            ("tout", time),
            ("hostname", string),
            ("eoi", DataType::Int32),
            ("ess", DataType::Int32),
        ];
        let fields = fields.map(|(name, kind)| Field::new(name, kind, false));
        Self {
            schema: Arc::new(Schema::new(fields.to_vec())),
        }
    }

    fn batch(&self, piece: &Piece) -> Result<RecordBatch, ArrowError> {
        let columns = &piece.columns;
        let arrays: Vec<ArrayRef> = vec![
            strings(&columns.operation_signature)?,
            strings(&columns.session_id)?,
            Arc::new(Int64Array::from(columns.trace_id.clone())),
            Arc::new(TimestampNanosecondArray::from(columns.tin.clone())),
            Arc::new(TimestampNanosecondArray::from(columns.tout.clone())),
            strings(&columns.hostname)?,
            Arc::new(Int32Array::from(columns.eoi.clone())),
            Arc::new(Int32Array::from(columns.ess.clone())),
        ];
        RecordBatch::try_new(Arc::clone(&self.schema), arrays)
    }

    fn write(&self, piece: &Piece, out: &mut Vec<u8>) -> Result<(), ArrowError> {
        let batch = self.batch(piece)?;
        let mut writer = StreamWriter::try_new(out, &self.schema)?;
        writer.write(&batch)?;
        writer.finish()
    }
}

fn strings(column: &TextColumn) -> Result<ArrayRef, ArrowError> {
    let texts = StringArray::from_iter_values(&column.texts);
    let ids = UInt16Array::from(column.ids.clone());
    Ok(Arc::new(DictionaryArray::try_new(ids, Arc::new(texts))?))
}

fn read(chunk: &[u8]) -> Result<Vec<RecordBatch>, Failure> {
    let batches = StreamReader::try_new(chunk, None).and_then(Iterator::collect);
    batches.map_err(cannot_decode())
}

impl Format for Arrow {
    fn encode(&mut self, piece: &Piece, out: &mut Vec<u8>) -> Result<(), Failure> {
        self.write(piece, out).map_err(cannot_encode())
    }

    fn decode(&mut self, chunk: &[u8]) -> Result<usize, Failure> {
        let batches = black_box(read(chunk)?);
        Ok(batches.iter().map(RecordBatch::num_rows).sum())
    }

    fn each(&mut self, chunk: &[u8], see: &mut dyn FnMut(PlainCall<'_>)) -> Result<(), Failure> {
        for batch in &read(chunk)? {
            let columns = ArrowColumns::of(batch);
            let columns = columns.ok_or_else(|| Failure::new("a column is of another type"))?;
            for row in 0..batch.num_rows() {
                see(columns.row(row).ok_or_else(no_string)?);
            }
        }
        Ok(())
    }
}

/// A column of strings: positions in a dictionary, and the dictionary.
struct Strings<'a>(&'a [u16], &'a StringArray);

impl<'a> Strings<'a> {
    fn of(column: &'a dyn Array) -> Option<Self> {
        let dictionary: &DictionaryArray<UInt16Type> = column.as_any().downcast_ref()?;
        let texts = dictionary.values().as_any().downcast_ref()?;
        Some(Self(dictionary.keys().values(), texts))
    }

    fn get(&self, row: usize) -> Option<&'a str> {
        let Self(ids, texts) = self;
        let at = usize::from(*ids.get(row)?);
        (at < texts.len()).then(|| texts.value(at))
    }
}

struct ArrowColumns<'a> {
    operation_signature: Strings<'a>,
    session_id: Strings<'a>,
    hostname: Strings<'a>,
    trace_id: &'a [i64],
    tin: &'a [i64],
    tout: &'a [i64],
    eoi: &'a [i32],
    ess: &'a [i32],
}

impl<'a> ArrowColumns<'a> {
    fn of(batch: &'a RecordBatch) -> Option<Self> {
        let column = |at: usize| {
            batch
                .columns()
                .get(at)
                .map(|column| column.as_ref() as &dyn Array)
        };
        let time = |at| {
            let array = column(at)?
                .as_any()
                .downcast_ref::<TimestampNanosecondArray>()?;
            Some(&**array.values())
        };
        let short = |at| {
            let array = column(at)?.as_any().downcast_ref::<Int32Array>()?;
            Some(&**array.values())
        };
        Some(Self {
            operation_signature: Strings::of(column(0)?)?,
            session_id: Strings::of(column(1)?)?,
            trace_id: column(2)?.as_any().downcast_ref::<Int64Array>()?.values(),
            tin: time(3)?,
            tout: time(4)?,
            hostname: Strings::of(column(5)?)?,
            eoi: short(6)?,
            ess: short(7)?,
        })
    }

    fn row(&self, row: usize) -> Option<PlainCall<'a>> {
        Some(PlainCall {
            operation_signature: self.operation_signature.get(row)?,
            session_id: self.session_id.get(row)?,
            trace_id: *self.trace_id.get(row)?,
            tin: *self.tin.get(row)?,
            tout: *self.tout.get(row)?,
            hostname: self.hostname.get(row)?,
            eoi: *self.eoi.get(row)?,
            ess: *self.ess.get(row)?,
        })
    }
}
