//! Arrow's IPC stream: schema, dictionaries, one record batch.

use std::sync::Arc;

use arrow_array::types::UInt16Type;
use arrow_array::{
    Array, ArrayRef, DictionaryArray, Int32Array, Int64Array, RecordBatch, StringArray,
    TimestampNanosecondArray, UInt16Array,
};
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{ArrowError, DataType, Field, Schema, TimeUnit};
use baler_rig::recording::PlainCall;

use super::super::piece::{Piece, TextColumn};
use super::{Calls, Format, cannot_decode, cannot_encode, no_string};
use crate::failure::Failure;

/// With dictionaries, or with plain strings.
pub(in super::super) struct Arrow {
    schema: Arc<Schema>,
    dictionaries: bool,
}

impl Arrow {
    pub(in super::super) fn new(dictionaries: bool) -> Self {
        let string = match dictionaries {
            true => DataType::Dictionary(Box::new(DataType::UInt16), Box::new(DataType::Utf8)),
            false => DataType::Utf8,
        };
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
            dictionaries,
        }
    }

    fn strings(&self, column: &TextColumn) -> Result<ArrayRef, ArrowError> {
        if self.dictionaries {
            let texts = StringArray::from_iter_values(&column.texts);
            let ids = UInt16Array::from(column.ids.clone());
            return Ok(Arc::new(DictionaryArray::try_new(ids, Arc::new(texts))?));
        }
        let texts = column
            .ids
            .iter()
            .map(|id| column.texts.get(usize::from(*id)));
        let texts: Option<Vec<_>> = texts.collect();
        let texts = texts.ok_or_else(|| ArrowError::ComputeError("no such string".into()))?;
        Ok(Arc::new(StringArray::from_iter_values(texts)))
    }

    fn batch(&self, piece: &Piece<'_>) -> Result<RecordBatch, ArrowError> {
        let columns = &piece.columns;
        let arrays: Vec<ArrayRef> = vec![
            self.strings(&columns.operation_signature)?,
            self.strings(&columns.session_id)?,
            Arc::new(Int64Array::from(columns.trace_id.clone())),
            Arc::new(TimestampNanosecondArray::from(columns.tin.clone())),
            Arc::new(TimestampNanosecondArray::from(columns.tout.clone())),
            self.strings(&columns.hostname)?,
            Arc::new(Int32Array::from(columns.eoi.clone())),
            Arc::new(Int32Array::from(columns.ess.clone())),
        ];
        RecordBatch::try_new(Arc::clone(&self.schema), arrays)
    }

    fn write(&self, piece: &Piece<'_>, out: &mut Vec<u8>) -> Result<(), ArrowError> {
        let batch = self.batch(piece)?;
        let mut writer = StreamWriter::try_new(out, &self.schema)?;
        writer.write(&batch)?;
        writer.finish()
    }
}

impl Format for Arrow {
    type Decoded<'a> = Vec<RecordBatch>;

    fn encode(&mut self, piece: &Piece<'_>, out: &mut Vec<u8>) -> Result<(), Failure> {
        self.write(piece, out).map_err(cannot_encode())
    }

    fn decode<'a>(&'a mut self, chunk: &'a [u8]) -> Result<Vec<RecordBatch>, Failure> {
        let batches = StreamReader::try_new(chunk, None).and_then(Iterator::collect);
        batches.map_err(cannot_decode())
    }
}

impl Calls for Vec<RecordBatch> {
    fn count(&self) -> usize {
        self.iter().map(RecordBatch::num_rows).sum()
    }

    fn each(&self, see: &mut dyn FnMut(PlainCall<'_>)) -> Result<(), Failure> {
        for batch in self {
            let columns = ArrowColumns::of(batch);
            let columns = columns.ok_or_else(|| Failure::new("a column is of another type"))?;
            for row in 0..batch.num_rows() {
                see(columns.row(row).ok_or_else(no_string)?);
            }
        }
        Ok(())
    }
}

/// Strings with or without a dictionary.
enum Strings<'a> {
    Dictionary(&'a [u16], &'a StringArray),
    Plain(&'a StringArray),
}

impl<'a> Strings<'a> {
    fn of(column: &'a dyn Array) -> Option<Self> {
        let any = column.as_any();
        if let Some(plain) = any.downcast_ref() {
            return Some(Self::Plain(plain));
        }
        let dictionary: &DictionaryArray<UInt16Type> = any.downcast_ref()?;
        let texts = dictionary.values().as_any().downcast_ref()?;
        Some(Self::Dictionary(dictionary.keys().values(), texts))
    }

    fn get(&self, row: usize) -> Option<&'a str> {
        let (texts, at) = match self {
            Self::Dictionary(ids, texts) => (texts, usize::from(*ids.get(row)?)),
            Self::Plain(texts) => (texts, row),
        };
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
