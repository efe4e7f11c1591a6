//! The classes of records in a stream, and the copying of their records to a chunk.

use std::mem;
use std::sync::Arc;

use baler_common::container::cursor::Cursor;
use baler_common::container::{DecodeError, DecodeErrorKind};
use baler_common::number::{to_u64, to_usize};
use baler_common::record::{Catalog, FieldType, Schema};

use super::chunk::KiekerChunk;
use super::decode::{CLASS, field_bytes, invalid};
use super::list_bytes;
use super::registry::{Registry, STRING_ID, Stop, unregistered};
use crate::types;

/// The most bytes of one record, without its strings.
pub(super) const MAX_RECORD_BYTES: usize = 1 << 20;

/// The id of no trace.
const NO_TRACE: i64 = -1;

/// A record class of a stream.
#[derive(Debug)]
pub(super) struct StreamClass {
    pub(super) schema: Arc<Schema>,
    /// Whether it is one of Kieker's own types, which every consumer knows.
    pub(super) is_kiekers: bool,
    pub(super) parts: Vec<Part>,
}

/// A part of a record, after the id of its class.
#[derive(Debug)]
pub(super) enum Part {
    List(FieldType),
    Run(Run),
}

/// Neighbouring fields of fixed sizes, copied at once. In messages of AMQP a run ends before each
/// string.
#[derive(Debug, Default)]
pub(super) struct Run {
    pub(super) bytes: usize,
    /// The fields that are checked or that differ in the chunk, with their positions in the run.
    pub(super) special: Vec<(usize, Special)>,
}

/// A field that is not copied as it is.
#[derive(Debug)]
pub(super) enum Special {
    Bool,
    String,
    /// The id of a trace. This key makes it unique.
    TraceId(i64),
}

/// Returns the record class with a name. A key makes the ids of its traces unique.
#[cold]
pub(super) fn class(
    catalog: &Catalog,
    name: &str,
    (trace_key, is_message): (Option<i64>, bool),
    at: &Cursor<'_>,
) -> Result<StreamClass, DecodeError> {
    let Some(schema) = catalog.get(name) else {
        let name = name.into();
        return Err(at.error(CLASS, DecodeErrorKind::UnknownRecordType { name }));
    };
    let kieker = types::shared_catalog();
    Ok(StreamClass {
        is_kiekers: kieker.get(name) == Some(schema),
        schema: Arc::clone(schema),
        parts: parts(schema, trace_key, is_message, at)?,
    })
}

fn parts(
    schema: &Schema,
    trace_key: Option<i64>,
    is_message: bool,
    at: &Cursor<'_>,
) -> Result<Vec<Part>, DecodeError> {
    let mut parts = Vec::new();
    let mut run = Run {
        // The logging timestamp.
        bytes: 8,
        special: Vec::new(),
    };
    for field in schema.fields() {
        let bytes = field_bytes(at, schema, field)?;
        let special = match (field.field_type(), trace_key) {
            (FieldType::Bool, _) => Some(Special::Bool),
            (FieldType::I64, Some(key)) if is_trace_id(field.name()) => Some(Special::TraceId(key)),
            (FieldType::List(inner), _) => {
                parts.push(Part::Run(mem::take(&mut run)));
                parts.push(Part::List((**inner).clone()));
                continue;
            }
            (FieldType::String, _) => {
                if is_message {
                    parts.push(Part::Run(mem::take(&mut run)));
                }
                Some(Special::String)
            }
            _ => None,
        };
        run.special.extend(special.map(|it| (run.bytes, it)));
        run.bytes += bytes;
    }
    parts.push(Part::Run(run));
    Ok(parts)
}

/// Whether a field holds the id of a trace: the record's own (`traceId`) or another one, such as
/// `parentTraceId`.
fn is_trace_id(field: &str) -> bool {
    field == "traceId" || field.ends_with("TraceId")
}

/// Copies the parts of a record, with the chunk's ids.
pub(super) fn copy_parts(
    chunk: &mut KiekerChunk,
    registry: &mut Registry,
    parts: &[Part],
    input: &mut Cursor<'_>,
) -> Result<(), Stop> {
    for part in parts {
        match part {
            Part::List(inner) => put_list(chunk, registry, inner, input)?,
            Part::Run(run) => put_run(chunk, registry, run, input)?,
        }
    }
    Ok(())
}

fn put_run(
    chunk: &mut KiekerChunk,
    registry: &mut Registry,
    run: &Run,
    input: &mut Cursor<'_>,
) -> Result<(), Stop> {
    const FIELDS: &str = "the fields of a record";
    if let Some((0, Special::String)) = run.special.first() {
        registry.take_nested(input)?;
    }
    let begin = input.clone();
    let taken = input.take(run.bytes, FIELDS);
    let fields = match &taken {
        Ok(fields) => *fields,
        // The first fields may still be wrong.
        Err(_) => begin.clone().take_rest(),
    };
    let place = chunk.sizes().0;
    chunk.put(fields);
    for (offset, special) in &run.special {
        let Some(field) = fields.get(*offset..) else {
            break;
        };
        let place = place + *offset;
        match special {
            Special::Bool => match field.first() {
                None => break,
                Some(0 | 1) => {}
                Some(byte) => {
                    let at = begin.after(*offset);
                    return Err(at.error("a bool", invalid(*byte)).into());
                }
            },
            Special::String => {
                let Some(id) = field.first_chunk() else { break };
                let id = i32::from_be_bytes(*id);
                let Some(string) = registry.strings.get_mut(id) else {
                    return Err(unregistered(&begin.after(*offset), STRING_ID, id));
                };
                let id = chunk.string_id(&mut string.string);
                chunk.replace(place, id.to_be_bytes());
            }
            Special::TraceId(key) => {
                let Some(id) = field.first_chunk() else { break };
                let id = unique_trace_id(i64::from_be_bytes(*id), *key);
                chunk.replace(place, id.to_be_bytes());
            }
        }
    }
    Ok(taken.map(drop)?)
}

/// Maps the id of a trace with a key. Ids of one sender stay different, -1 (no trace) stays, and so
/// does the sign if the key has none.
fn unique_trace_id(id: i64, key: i64) -> i64 {
    match id ^ key {
        _ if id == NO_TRACE => id,
        // Otherwise only -1 would map to the value of this id.
        NO_TRACE => id,
        unique => unique,
    }
}

/// Takes a bool, as its byte.
fn take_bool(input: &mut Cursor<'_>) -> Result<[u8; 1], Stop> {
    let at = input.clone();
    match input.array("a bool")? {
        byte @ [0 | 1] => Ok(byte),
        [byte] => Err(at.error("a bool", invalid(byte)).into()),
    }
}

fn put_string(
    chunk: &mut KiekerChunk,
    registry: &mut Registry,
    input: &mut Cursor<'_>,
) -> Result<(), Stop> {
    let at = input.clone();
    registry.take_nested(input)?;
    let id = i32::from_be_bytes(input.array(STRING_ID)?);
    let string = registry.find(&at, STRING_ID, id)?;
    chunk.put_string(&mut string.string);
    Ok(())
}

#[inline(never)]
fn put_list(
    chunk: &mut KiekerChunk,
    registry: &mut Registry,
    inner: &FieldType,
    input: &mut Cursor<'_>,
) -> Result<(), Stop> {
    const LENGTH: &str = "the length of a list";
    let at = input.clone();
    let length: [u8; 4] = input.array(LENGTH)?;
    let items = to_usize(u32::from_be_bytes(length));
    let needed = list_bytes(inner, items);
    if needed > MAX_RECORD_BYTES {
        return Err(at
            .over_limit(LENGTH, to_u64(needed), MAX_RECORD_BYTES)
            .into());
    }
    // Take all items at once; otherwise a list that arrives in pieces is read again with each
    // piece.
    let bytes = input.clone().take(needed, LENGTH)?;
    chunk.put(&length);
    match inner {
        FieldType::Bool => (0..items).try_for_each(|_| {
            chunk.put(&take_bool(input)?);
            Ok(())
        }),
        FieldType::String => (0..items).try_for_each(|_| put_string(chunk, registry, input)),
        _ => {
            input.take(needed, LENGTH)?;
            chunk.put(bytes);
            Ok(())
        }
    }
}
