//! Formats of rows through serde: Avro, Postcard.

use std::hint::black_box;
use std::mem;

use apache_avro::{Reader, Schema, Writer};
use baler_rig::workload::PlainCall;
use serde::Deserialize;

use super::super::piece::{Piece, Table};
use super::{Format, cannot_decode, cannot_encode};
use crate::Failure;

/// An object container of Avro: the schema as JSON, one block, a marker.
pub(in super::super) struct Avro {
    schema: Schema,
}

const SCHEMA: &str = r#"{"type":"record","name":"OperationExecutionRecord","fields":[
    {"name":"operationSignature","type":"string"},{"name":"sessionId","type":"string"},
    {"name":"traceId","type":"long"},{"name":"tin","type":"long"},{"name":"tout","type":"long"},
    {"name":"hostname","type":"string"},{"name":"eoi","type":"int"},{"name":"ess","type":"int"}]}"#;

impl Avro {
    pub(in super::super) fn new() -> Result<Self, Failure> {
        let schema = Schema::parse_str(SCHEMA).map_err(cannot_encode())?;
        Ok(Self { schema })
    }
}

/// A row of the reader, which borrows nothing. The reader also compares the name.
#[derive(Deserialize)]
#[serde(rename = "OperationExecutionRecord", rename_all = "camelCase")]
struct AvroRow {
    operation_signature: String,
    session_id: String,
    trace_id: i64,
    tin: i64,
    tout: i64,
    hostname: String,
    eoi: i32,
    ess: i32,
}

impl AvroRow {
    fn plain(&self) -> PlainCall<'_> {
        PlainCall {
            operation_signature: &self.operation_signature,
            session_id: &self.session_id,
            trace_id: self.trace_id,
            tin: self.tin,
            tout: self.tout,
            hostname: &self.hostname,
            eoi: self.eoi,
            ess: self.ess,
        }
    }
}

fn avro(chunk: &[u8]) -> Result<Vec<AvroRow>, Failure> {
    let reader = Reader::new(chunk).map_err(cannot_decode())?;
    let rows = reader.into_deser_iter();
    rows.collect::<Result<_, _>>().map_err(cannot_decode())
}

impl Format for Avro {
    fn encode(&mut self, piece: &Piece<'_>, out: &mut Vec<u8>) -> Result<(), Failure> {
        let mut writer = Writer::new(&self.schema, out).map_err(cannot_encode())?;
        for call in &piece.calls {
            writer.append_ser(call).map_err(cannot_encode())?;
        }
        writer.into_inner().map(drop).map_err(cannot_encode())
    }

    fn decode(&mut self, chunk: &[u8]) -> Result<usize, Failure> {
        Ok(black_box(avro(chunk)?).len())
    }

    fn has(&mut self, chunk: &[u8], piece: &Piece<'_>) -> Result<bool, Failure> {
        let rows = avro(chunk)?;
        Ok(rows
            .iter()
            .map(AvroRow::plain)
            .eq(piece.calls.iter().copied()))
    }
}

/// Postcard: integers of variable length, no names; rows after a string table.
pub(in super::super) struct Postcard;

fn postcard(chunk: &[u8]) -> Result<Table<'_>, Failure> {
    ::postcard::from_bytes(chunk).map_err(cannot_decode())
}

impl Format for Postcard {
    fn encode(&mut self, piece: &Piece<'_>, out: &mut Vec<u8>) -> Result<(), Failure> {
        let written = ::postcard::to_extend(&piece.table, mem::take(out));
        *out = written.map_err(cannot_encode())?;
        Ok(())
    }

    fn decode(&mut self, chunk: &[u8]) -> Result<usize, Failure> {
        Ok(black_box(postcard(chunk)?).rows.len())
    }

    fn has(&mut self, chunk: &[u8], piece: &Piece<'_>) -> Result<bool, Failure> {
        Ok(postcard(chunk)? == piece.table)
    }
}
