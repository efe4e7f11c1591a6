//! Decodes native chunks to batches.

use super::blocks::Blocks;
use super::columnar::{self, IntScratch};
use super::head::Head;
use super::prefix::{self, Envelope, MAGIC, unknown};
use crate::container::codec::Decompressor;
use crate::container::compression::BlockCompression;
use crate::container::cursor::Cursor;
use crate::container::decoded::{ChunkSummary, DecodedChunk, Layout};
#[cfg(feature = "zstd")]
use crate::container::dictionary::Dictionaries;
use crate::container::error::{DecodeError, DecodeErrorKind};
use crate::container::format::{BodyFormat, ChunkDeserializer, FIRST_ADDED_NUMBER};
use crate::container::limits::Limits;
use crate::container::well_known::WellKnownTypes;
use crate::number::to_u64;
use crate::record::RecordBatch;
use crate::transport::ContainerKind;

/// The buffer memory that a decoder keeps, so that one large chunk does not take memory for ever.
pub(super) const KEPT_BYTES: usize = 4 << 20;

/// Reads Baler's own container; keeps memory from chunk to chunk.
#[derive(Debug, Default)]
pub struct NativeDeserializer {
    /// The added body formats.
    formats: Vec<&'static dyn BodyFormat>,
    /// The types that chunks name by number.
    well_known: Option<&'static WellKnownTypes>,
    decompressor: Decompressor,
    body: Vec<u8>,
    ints: IntScratch,
}

impl NativeDeserializer {
    /// Adds a format of bodies.
    pub(in crate::container) fn add_format(&mut self, format: &'static dyn BodyFormat) {
        self.formats.push(format);
    }

    /// Sets the types that chunks name by number.
    pub(in crate::container) fn set_well_known(&mut self, known: &'static WellKnownTypes) {
        self.well_known = Some(known);
    }

    /// Adds a compression.
    pub(in crate::container) fn add_compression(&mut self, added: &'static dyn BlockCompression) {
        self.decompressor.add(added);
    }

    /// Reads the body of a chunk.
    fn body(
        &mut self,
        opened: &Opened<'_>,
        limits: &Limits,
        layout: Option<&mut Layout>,
    ) -> Result<RecordBatch, DecodeError> {
        let blocks = &opened.blocks;
        let bytes = blocks.body(&mut self.decompressor, &mut self.body, limits)?;
        match opened.format {
            Some(format) => deserialize_added(format, bytes, &opened.head, limits),
            None => columnar::decode(
                bytes,
                &mut BodyContext {
                    head: &opened.head,
                    limits,
                    well_known: self.well_known,
                    ints: &mut self.ints,
                    layout,
                },
            ),
        }
    }

    /// Sets the dictionaries that chunks may name.
    #[cfg(feature = "zstd")]
    pub(in crate::container) fn set_dictionaries(&mut self, dictionaries: Dictionaries) {
        self.decompressor.set_dictionaries(dictionaries);
    }
}

/// A copy has the same settings, and memory of its own.
impl Clone for NativeDeserializer {
    fn clone(&self) -> Self {
        Self {
            formats: self.formats.clone(),
            well_known: self.well_known,
            decompressor: self.decompressor.clone(),
            ..Self::default()
        }
    }
}

impl ChunkDeserializer for NativeDeserializer {
    fn magic(&self) -> [u8; 4] {
        MAGIC
    }

    /// Summarizes the chunk. Verifies its checksums, but does not read its body.
    fn summarize(&self, chunk: &[u8], limits: &Limits) -> Result<ChunkSummary, DecodeError> {
        Opened::open(chunk, limits, &self.formats, &self.decompressor).map(|it| it.summary)
    }

    fn deserialize(
        &mut self,
        chunk: &[u8],
        limits: &Limits,
        mut layout: Option<&mut Layout>,
    ) -> Result<DecodedChunk, DecodeError> {
        let opened = Opened::open(chunk, limits, &self.formats, &self.decompressor)?;
        if let Some(layout) = &mut layout {
            layout.stored_body_bytes = opened.blocks.stored_bytes;
            layout.body_bytes = opened.blocks.raw_bytes;
            layout.header_bytes = chunk.len() - opened.blocks.stored_bytes;
        }
        let batch = self.body(&opened, limits, layout);
        // Also after an error.
        self.body.clear();
        self.body.shrink_to(KEPT_BYTES);
        self.ints.shrink_to(KEPT_BYTES);
        Ok(DecodedChunk {
            summary: opened.summary,
            batch: batch?,
        })
    }
}

/// The environment of a body's decoder.
pub(super) struct BodyContext<'a> {
    /// The header, which contains the counts and the clock.
    pub(super) head: &'a Head,
    /// The limits of the decoder.
    pub(super) limits: &'a Limits,
    /// The types that chunks name by number.
    pub(super) well_known: Option<&'static WellKnownTypes>,
    /// Memory for columns while they are read, kept from chunk to chunk.
    pub(super) ints: &'a mut IntScratch,
    /// Filled if the caller wants the sizes of the chunk's parts.
    pub(super) layout: Option<&'a mut Layout>,
}

/// A chunk with valid prefix, checksum and header.
struct Opened<'a> {
    /// The format of the body, unless it is columnar.
    format: Option<&'static dyn BodyFormat>,
    head: Head,
    blocks: Blocks<'a>,
    summary: ChunkSummary,
}

impl<'a> Opened<'a> {
    fn open(
        chunk: &'a [u8],
        limits: &Limits,
        formats: &[&'static dyn BodyFormat],
        decompressor: &Decompressor,
    ) -> Result<Self, DecodeError> {
        let Envelope {
            format: number,
            mut content,
            checksum,
        } = prefix::open(chunk, limits)?;
        let mut added = formats.iter().copied();
        let format = match number {
            ..FIRST_ADDED_NUMBER => None,
            FIRST_ADDED_NUMBER.. => added.find(|it| it.number() == number),
        };
        if format.is_none() && number != columnar::NUMBER {
            let reading = "the body's format";
            let at = Cursor::new(chunk);
            return Err(unknown(&at, reading, "body format", number.into()));
        }
        let head = Head::read(&mut content, limits)?;
        let blocks = Blocks::read(&mut content, limits)?;
        let summary = ChunkSummary {
            container: ContainerKind::Native,
            format: format.map_or(columnar::NAME, BodyFormat::name),
            compression: blocks.compression(decompressor)?,
            bytes: chunk.len(),
            checksum,
            records: Some(head.records),
            time_span: head.time_span,
            header: Some(head.header.clone()),
        };
        Ok(Self {
            format,
            head,
            blocks,
            summary,
        })
    }
}

/// Reads a body of an added format. It must have as many records as the header says.
fn deserialize_added(
    format: &dyn BodyFormat,
    body: &[u8],
    head: &Head,
    limits: &Limits,
) -> Result<RecordBatch, DecodeError> {
    let batch = format.deserialize(body, limits)?;
    if batch.len() == head.records {
        return Ok(batch);
    }
    let kind = DecodeErrorKind::Length {
        declared: to_u64(head.records),
        found: to_u64(batch.len()),
    };
    Err(Cursor::in_body(body).error("the number of records", kind))
}
