//! Native chunks to batches.

use super::blocks::Blocks;
use super::columnar::{self, IntScratch};
use super::head::Head;
use super::prefix::{self, unknown};
use crate::container::codec::Decompressor;
use crate::container::cursor::Cursor;
use crate::container::decoder::{ChunkSummary, DecodeContext, DecodedChunk, Layout};
#[cfg(feature = "zstd")]
use crate::container::dictionary::Dictionaries;
use crate::container::error::{DecodeError, DecodeErrorKind};
use crate::container::format::{BodyFormat, FIRST_ADDED_FORMAT};
use crate::container::limits::Limits;
use crate::container::num::to_u64;
use crate::record::RecordBatch;
use crate::transport::ContainerKind;

/// How much of its buffers a decoder keeps: one large chunk is not paid for until the end.
pub(super) const KEPT_BYTES: usize = 4 << 20;

/// Memory that a decoder keeps from chunk to chunk.
#[derive(Debug, Default)]
pub(in crate::container) struct DecodeScratch {
    decompressor: Decompressor,
    body: Vec<u8>,
    ints: IntScratch,
}

impl DecodeScratch {
    /// Takes the memory of a batch for those to come.
    pub(in crate::container) fn reuse(&mut self, batch: RecordBatch) {
        self.ints.spare.add(batch);
    }
}

/// A copy starts with memory of its own: there is no knowledge to copy but the dictionaries.
impl Clone for DecodeScratch {
    fn clone(&self) -> Self {
        Self {
            decompressor: self.decompressor.clone(),
            ..Self::default()
        }
    }
}

#[cfg(feature = "zstd")]
impl DecodeScratch {
    /// Sets the dictionaries that chunks may name.
    pub(in crate::container) fn set_dictionaries(&mut self, dictionaries: Dictionaries) {
        self.decompressor.set_dictionaries(dictionaries);
    }
}

/// What the decoder of a body works with.
pub(super) struct BodyContext<'a> {
    /// The header, which has the counts and the clock.
    pub(super) head: &'a Head,
    /// What the decoder may spend.
    pub(super) limits: &'a Limits,
    /// Memory for columns while they are read, kept from chunk to chunk.
    pub(super) ints: &'a mut IntScratch,
    /// Filled when the caller asked where the bytes went.
    pub(super) layout: Option<&'a mut Layout>,
}

/// A chunk whose prefix, checksum and header were found in order.
struct Opened<'a> {
    /// The format of the body, unless it is columnar.
    format: Option<&'static dyn BodyFormat>,
    head: Head,
    blocks: Blocks<'a>,
    summary: ChunkSummary,
}

impl<'a> Opened<'a> {
    fn new(
        chunk: &'a [u8],
        limits: &Limits,
        formats: &[&'static dyn BodyFormat],
    ) -> Result<Self, DecodeError> {
        let (number, mut content) = prefix::open(chunk, limits)?;
        let mut added = formats.iter().copied();
        let format = added.find(|it| it.number() == number && number >= FIRST_ADDED_FORMAT);
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
            compression: blocks.compression()?,
            bytes: chunk.len(),
            checksum: chunk.last_chunk().copied().map_or(0, u32::from_le_bytes),
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

/// Checks the chunk and decodes its records.
pub(in crate::container) fn decode(
    chunk: &[u8],
    context: &mut DecodeContext<'_>,
) -> Result<DecodedChunk, DecodeError> {
    let opened = Opened::new(chunk, context.limits, context.formats)?;
    let DecodeScratch {
        decompressor,
        body,
        ints,
    } = &mut *context.scratch;
    let body_bytes = opened.blocks.body(decompressor, body, context.limits)?;
    if let Some(layout) = &mut context.layout {
        layout.stored_body_bytes = opened.blocks.stored_bytes;
        layout.body_bytes = opened.blocks.raw_bytes;
        layout.header_bytes = chunk.len().saturating_sub(opened.blocks.stored_bytes);
    }
    let batch = match opened.format {
        Some(format) => deserialize(format, body_bytes, &opened.head, context.limits)?,
        None => {
            let mut body_context = BodyContext {
                head: &opened.head,
                limits: context.limits,
                ints,
                layout: context.layout.as_deref_mut(),
            };
            columnar::decode(body_bytes, &mut body_context)?
        }
    };
    body.clear();
    body.shrink_to(KEPT_BYTES);
    ints.shrink_to(KEPT_BYTES);
    Ok(DecodedChunk {
        summary: opened.summary,
        batch,
    })
}

/// Reads a body of a format that was added. It must have as many records as the header says.
fn deserialize(
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

/// Says what the chunk is, its checksums verified and its body left alone.
pub(in crate::container) fn summarize(
    chunk: &[u8],
    limits: &Limits,
    formats: &[&'static dyn BodyFormat],
) -> Result<ChunkSummary, DecodeError> {
    Opened::new(chunk, limits, formats).map(|opened| opened.summary)
}
