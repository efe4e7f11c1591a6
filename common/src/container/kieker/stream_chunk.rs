//! Chunks that were cut from a stream.

use std::sync::Arc;

use super::chunk::KiekerChunk;
use super::decode::invalid;
use super::least_bytes;
use super::registry::{Part, Registry, Run, STRING_ID, Special, Stop, unregistered};
use super::stream::KiekerStream;
use crate::container::compression::Compression;
use crate::container::cursor::Cursor;
use crate::container::decoder::ChunkDecoder;
use crate::container::format::ChunkSerializer as _;
use crate::container::header::ChunkHeader;
use crate::container::native::NativeSerializer;
use crate::number::{to_u64, to_usize};
use crate::record::{Catalog, FieldType};
use crate::transport::{ChunkIdentity, ChunkMeta, ContainerKind};

/// The id of no trace.
const NO_TRACE: i64 = -1;

/// A complete chunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamChunk {
    /// The container.
    pub bytes: Vec<u8>,
    /// The number of its records.
    pub records: u32,
    /// Whether all records have Kieker's own types. Otherwise a consumer needs the stream's
    /// catalog.
    pub has_only_kiekers_types: bool,
}

impl StreamChunk {
    /// Converts the chunk to a container that every consumer can decode. A chunk with only Kieker's
    /// types stays as it is. Any other becomes a native chunk, which contains its schemas.
    ///
    /// A chunk that does not decode stays as it is, so that its consumer puts it into quarantine.
    /// The chunk gets the identity `next`, whose number then increases by one.
    pub fn for_every_consumer(
        self,
        catalog: &Arc<Catalog>,
        next: &mut ChunkIdentity,
    ) -> (ChunkMeta, Vec<u8>) {
        let identity = *next;
        next.sequence = identity.sequence.saturating_add(1);
        let make_native = || {
            let mut decoder = ChunkDecoder::default().with_catalog(Arc::clone(catalog));
            let decoded = decoder.decode(&self.bytes).ok()?;
            let mut bytes = Vec::new();
            let mut serializer = NativeSerializer::new(Compression::None).ok()?;
            let header = ChunkHeader::new(identity);
            let written = serializer.serialize(&decoded.batch, &header, &mut bytes);
            written.is_ok().then_some(bytes)
        };
        let native = match self.has_only_kiekers_types {
            true => None,
            false => make_native(),
        };
        let (container, bytes) = match native {
            Some(bytes) => (ContainerKind::Native, bytes),
            None => (ContainerKind::Kieker, self.bytes),
        };
        let meta = ChunkMeta {
            container,
            records: self.records,
            identity,
        };
        (meta, bytes)
    }
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
        let field = fields.get(*offset..).unwrap_or_default();
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
    let needed = items.saturating_mul(least_bytes(inner).unwrap_or(1));
    let limit = KiekerStream::MAX_RECORD_BYTES;
    if needed > limit {
        return Err(at.over_limit(LENGTH, to_u64(needed), limit).into());
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
