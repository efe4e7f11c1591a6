//! Chunks that a stream is cut into.

use std::sync::Arc;

use super::decode::invalid;
use super::least_bytes;
use super::registry::{Registry, STRING_ID, Stop, StreamString};
use super::stream::KiekerStream;
use crate::container::compression::Compression;
use crate::container::cursor::Cursor;
use crate::container::decoder::ChunkDecoder;
use crate::container::header::ChunkHeader;
use crate::container::native::NativeSerializer;
use crate::container::num::{to_u64, to_usize};
use crate::container::serializer::ChunkSerializer as _;
use crate::record::{Catalog, FieldType, Schema};
use crate::transport::{ChunkIdentity, ContainerKind};

/// A chunk, complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamChunk {
    /// The container.
    pub bytes: Vec<u8>,
    /// How many records are in it.
    pub records: u32,
    /// Whether all records are of Kieker's own types. Otherwise a consumer needs the catalog that
    /// the stream had.
    pub has_only_kiekers_types: bool,
}

impl StreamChunk {
    /// The chunk in a container that every consumer can decode: as it is where it has only Kieker's
    /// types, and otherwise in the native container, which holds its schemas.
    ///
    /// A chunk that does not decode stays as it is, so that its consumer puts it aside.
    pub fn for_every_consumer(
        self,
        catalog: &Arc<Catalog>,
        identity: ChunkIdentity,
    ) -> (ContainerKind, Vec<u8>) {
        if self.has_only_kiekers_types {
            return (ContainerKind::Kieker, self.bytes);
        }
        let mut decoder = ChunkDecoder::default().with_catalog(Arc::clone(catalog));
        let native = decoder.decode(&self.bytes).ok().and_then(|decoded| {
            let mut bytes = Vec::new();
            let mut serializer = NativeSerializer::new(Compression::None).ok()?;
            let header = ChunkHeader::new(identity);
            let written = serializer.serialize(&decoded.batch, &header, &mut bytes);
            written.is_ok().then_some(bytes)
        });
        match native {
            Some(bytes) => (ContainerKind::Native, bytes),
            None => (ContainerKind::Kieker, self.bytes),
        }
    }
}

/// The chunk that is being filled.
#[derive(Debug, Default)]
pub(super) struct OpenChunk {
    /// Magic, format and records.
    pub(super) bytes: Vec<u8>,
    pub(super) records: u32,
    /// By id of the chunk.
    pub(super) strings: Vec<Arc<str>>,
    pub(super) string_bytes: usize,
    /// A record is of a type that is not Kieker's own.
    pub(super) has_own_types: bool,
}

impl OpenChunk {
    pub(super) fn is_full(&self) -> bool {
        let bytes = self.bytes.len().saturating_add(self.string_bytes);
        self.records >= KiekerStream::CHUNK_RECORDS || bytes >= KiekerStream::CHUNK_BYTES
    }

    /// The chunk's id of a string, which is added if the chunk does not have it.
    pub(super) fn string_id(&mut self, string: &mut StreamString) -> u32 {
        let id = usize::try_from(string.chunk_id).unwrap_or(usize::MAX);
        let there = self.strings.get(id);
        if !there.is_some_and(|there| Arc::ptr_eq(there, &string.text)) {
            string.chunk_id = u32::try_from(self.strings.len()).unwrap_or(u32::MAX);
            let bytes = string.text.len().saturating_add(5);
            self.string_bytes = self.string_bytes.saturating_add(bytes);
            self.strings.push(Arc::clone(&string.text));
        }
        string.chunk_id
    }

    /// Copies timestamp and fields, with the chunk's ids.
    pub(super) fn record(
        &mut self,
        registry: &mut Registry,
        schema: &Schema,
        input: &mut Cursor<'_>,
    ) -> Result<(), Stop> {
        self.bytes
            .extend_from_slice(input.take(8, "a logging timestamp")?);
        for field in schema.fields() {
            self.value(registry, field.field_type(), input)?;
        }
        Ok(())
    }

    fn value(
        &mut self,
        registry: &mut Registry,
        field_type: &FieldType,
        input: &mut Cursor<'_>,
    ) -> Result<(), Stop> {
        let at = input.clone();
        match field_type {
            FieldType::Bool => match input.array("a bool")? {
                [byte @ (0 | 1)] => self.bytes.push(byte),
                [byte] => return Err(at.error("a bool", invalid(byte)).into()),
            },
            FieldType::String => {
                registry.take_nested(input)?;
                let id = i32::from_be_bytes(input.array(STRING_ID)?);
                let string = registry.find(&at, STRING_ID, id)?;
                let id = self.string_id(string);
                self.bytes.extend_from_slice(&id.to_be_bytes());
            }
            FieldType::List(inner) => {
                const LENGTH: &str = "the length of a list";
                let length: [u8; 4] = input.array(LENGTH)?;
                let items = to_usize(u32::from_be_bytes(length).into());
                let needed = items.saturating_mul(least_bytes(inner).unwrap_or(1));
                let limit = KiekerStream::MAX_RECORD_BYTES;
                if needed > limit {
                    return Err(at.over_limit(LENGTH, to_u64(needed), limit).into());
                }
                // All items at once, lest a list that comes in pieces is read again with each.
                input.clone().take(needed, LENGTH)?;
                self.bytes.extend_from_slice(&length);
                for _ in 0..items {
                    self.value(registry, inner, input)?;
                }
            }
            _ => {
                let bytes = least_bytes(field_type).unwrap_or(0);
                self.bytes.extend_from_slice(input.take(bytes, "a field")?);
            }
        }
        Ok(())
    }
}
