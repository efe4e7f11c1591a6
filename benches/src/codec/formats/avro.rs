//! Avro's object container: the schema as JSON, one block, a marker.

use apache_avro::{Reader, Schema, Writer};
use serde::Deserialize;

use super::super::piece::{Inline, Piece};
use super::{Format, cannot_decode, cannot_encode, no_string};
use crate::failure::Failure;

const SCHEMA: &str = r#"{"type":"record","name":"OperationExecutionRecord","fields":[
    {"name":"operationSignature","type":"string"},{"name":"sessionId","type":"string"},
    {"name":"traceId","type":"long"},{"name":"tin","type":"long"},{"name":"tout","type":"long"},
    {"name":"hostname","type":"string"},{"name":"eoi","type":"int"},{"name":"ess","type":"int"}]}"#;

/// A row as the reader yields it: it lends nothing. The reader compares the name, too.
#[derive(Deserialize)]
#[serde(rename = "OperationExecutionRecord", rename_all = "camelCase")]
struct Row {
    operation_signature: String,
    session_id: String,
    trace_id: i64,
    tin: i64,
    tout: i64,
    hostname: String,
    eoi: i32,
    ess: i32,
}

/// Written and read by way of serde.
pub(in super::super) struct Avro {
    schema: Schema,
}

impl Avro {
    pub(in super::super) fn new() -> Result<Self, Failure> {
        let schema = Schema::parse_str(SCHEMA).map_err(cannot_encode())?;
        Ok(Self { schema })
    }
}

impl Format for Avro {
    type Decoded<'a> = Vec<Inline<'static>>;

    fn encode(&mut self, piece: &Piece<'_>, out: &mut Vec<u8>) -> Result<(), Failure> {
        let mut writer = Writer::new(&self.schema, out).map_err(cannot_encode())?;
        for call in piece.plain() {
            let appended = writer.append_ser(Inline::of(call.ok_or_else(no_string)?));
            appended.map_err(cannot_encode())?;
        }
        writer.into_inner().map(drop).map_err(cannot_encode())
    }

    fn decode<'a>(&'a mut self, chunk: &'a [u8]) -> Result<Self::Decoded<'a>, Failure> {
        let reader = Reader::new(chunk).map_err(cannot_decode())?;
        let rows = reader.into_deser_iter().map(|row| {
            let row: Row = row.map_err(cannot_decode())?;
            Ok(Inline {
                operation_signature: row.operation_signature.into(),
                session_id: row.session_id.into(),
                trace_id: row.trace_id,
                tin: row.tin,
                tout: row.tout,
                hostname: row.hostname.into(),
                eoi: row.eoi,
                ess: row.ess,
            })
        });
        rows.collect()
    }
}
