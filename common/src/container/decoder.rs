//! Decodes chunks of any container to batches, and finds where chunks end.

use std::sync::Arc;

use super::compression::BlockCompression;
use super::decoded::{ChunkSummary, DecodedChunk, Layout};
#[cfg(feature = "zstd")]
use super::dictionary::Dictionaries;
use super::error::{DecodeError, DecodeErrorKind};
use super::format::{BodyFormat, ChunkDeserializer};
use super::limits::Limits;
use super::native;
use super::native::NativeDeserializer;
use super::well_known::WellKnownTypes;
use crate::record::Catalog;

/// Decodes chunks from their bytes alone.
///
/// Between chunks it keeps only memory, no state: any decoder decodes any chunk, in any order.
#[derive(Debug, Clone)]
pub struct ChunkDecoder {
    limits: Limits,
    native: NativeDeserializer,
    added: Vec<Box<dyn AddedDeserializer>>,
}

/// A deserializer from another crate; each copy of the decoder has its own copy.
trait AddedDeserializer: ChunkDeserializer {
    fn copy(&self) -> Box<dyn AddedDeserializer>;
    fn as_deserializer(&self) -> &dyn ChunkDeserializer;
    fn as_deserializer_mut(&mut self) -> &mut dyn ChunkDeserializer;
}

impl<D: ChunkDeserializer + Clone + 'static> AddedDeserializer for D {
    fn copy(&self) -> Box<dyn AddedDeserializer> {
        Box::new(self.clone())
    }

    fn as_deserializer(&self) -> &dyn ChunkDeserializer {
        self
    }

    fn as_deserializer_mut(&mut self) -> &mut dyn ChunkDeserializer {
        self
    }
}

impl Clone for Box<dyn AddedDeserializer> {
    fn clone(&self) -> Self {
        (**self).copy()
    }
}

impl Default for ChunkDecoder {
    fn default() -> Self {
        Self::new(Limits::default())
    }
}

impl ChunkDecoder {
    /// Creates a decoder of native chunks.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            native: NativeDeserializer::default(),
            added: Vec::new(),
        }
    }

    /// Sets the types for the containers without schemas that were added so far.
    #[must_use]
    pub fn with_catalog(mut self, catalog: Arc<Catalog>) -> Self {
        for added in &mut self.added {
            added.as_deserializer_mut().set_catalog(&catalog);
        }
        self
    }

    /// Sets the types that native chunks name by number. Without this table a chunk that names one is
    /// refused with [`DecodeErrorKind::WellKnownTypesMissing`].
    #[must_use]
    pub fn with_well_known_types(mut self, types: &'static WellKnownTypes) -> Self {
        self.native.set_well_known(types);
        self
    }

    /// Adds a container. It is ignored if the decoder already knows its magic.
    #[must_use]
    pub fn with_deserializer(
        mut self,
        deserializer: impl ChunkDeserializer + Clone + 'static,
    ) -> Self {
        self.added.push(Box::new(deserializer));
        self
    }

    /// Adds a format of the bodies of native chunks. It is ignored if its number is below
    /// [`FIRST_ADDED_NUMBER`](super::FIRST_ADDED_NUMBER).
    #[must_use]
    pub fn with_format(mut self, format: &'static dyn BodyFormat) -> Self {
        self.native.add_format(format);
        self
    }

    /// Adds a compression of native chunks. It is ignored if its number is below
    /// [`FIRST_ADDED_NUMBER`](super::FIRST_ADDED_NUMBER).
    #[must_use]
    pub fn with_compression(mut self, compression: &'static dyn BlockCompression) -> Self {
        self.native.add_compression(compression);
        self
    }

    /// Sets the dictionaries for decompression. A chunk that names another one is refused with
    /// [`DecodeErrorKind::DictionaryMissing`].
    #[cfg(feature = "zstd")]
    #[must_use]
    pub fn with_dictionaries(mut self, dictionaries: Dictionaries) -> Self {
        self.native.set_dictionaries(dictionaries);
        self
    }

    /// Returns the limits of the decoder.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Checks the chunk and decodes its records.
    ///
    /// # Errors
    ///
    /// A [`DecodeError`] with the position and the reason; no record of a broken chunk is returned.
    pub fn decode(&mut self, chunk: &[u8]) -> Result<DecodedChunk, DecodeError> {
        self.decode_into(chunk, None)
    }

    /// Decodes the records and returns the sizes of the chunk's parts.
    ///
    /// # Errors
    ///
    /// As [`ChunkDecoder::decode`].
    pub fn decode_with_layout(
        &mut self,
        chunk: &[u8],
    ) -> Result<(DecodedChunk, Layout), DecodeError> {
        let mut layout = Layout::default();
        let decoded = self.decode_into(chunk, Some(&mut layout))?;
        Ok((decoded, layout))
    }

    /// Reads the information in a chunk without decoding its records.
    ///
    /// A native chunk's checksums are verified over all of its bytes, because no smaller checksum
    /// protects its header. Its body is neither decompressed nor read.
    ///
    /// # Errors
    ///
    /// As [`ChunkDecoder::decode`].
    pub fn summarize(&self, chunk: &[u8]) -> Result<ChunkSummary, DecodeError> {
        let native: &dyn ChunkDeserializer = &self.native;
        let added = self.added.iter().map(|it| it.as_deserializer());
        let found = std::iter::once(native)
            .chain(added)
            .find(|it| chunk.starts_with(&it.magic()));
        found
            .ok_or_else(|| unknown_container(chunk))?
            .summarize(chunk, &self.limits)
    }

    fn decode_into(
        &mut self,
        chunk: &[u8],
        layout: Option<&mut Layout>,
    ) -> Result<DecodedChunk, DecodeError> {
        let native: &mut dyn ChunkDeserializer = &mut self.native;
        let added = self.added.iter_mut().map(|it| it.as_deserializer_mut());
        let found = std::iter::once(native)
            .chain(added)
            .find(|it| chunk.starts_with(&it.magic()));
        found
            .ok_or_else(|| unknown_container(chunk))?
            .deserialize(chunk, &self.limits, layout)
    }
}

fn unknown_container(chunk: &[u8]) -> DecodeError {
    DecodeError {
        offset: 0,
        in_body: false,
        reading: "the magic",
        kind: DecodeErrorKind::UnknownContainer {
            found: chunk.iter().take(4).copied().collect(),
        },
    }
}

/// The end of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChunkExtent {
    /// This many bytes: a native chunk contains its length in its prefix.
    Bytes(u64),
    /// The chunk reaches to the end of its file or message: Kieker's container does not contain its
    /// length.
    ToEnd,
}

impl ChunkExtent {
    /// The number of bytes that [`ChunkExtent::of`] needs.
    pub const NEEDED_BYTES: usize = native::PREFIX_BYTES;

    /// The first bytes of a native chunk. A reader searches for them after damage.
    pub const NATIVE_MAGIC: [u8; 4] = native::MAGIC;

    /// The first bytes of a chunk in Kieker's container, which has a crate of its own.
    pub const KIEKER_MAGIC: [u8; 4] = *b"KIKA";

    /// Returns the extent of the chunk that begins with these bytes. Returns `None` if no chunk
    /// does, or if the checksum of its prefix does not match.
    pub fn of(start: &[u8]) -> Option<Self> {
        if start.starts_with(&Self::KIEKER_MAGIC) {
            return Some(Self::ToEnd);
        }
        native::declared_bytes(start).map(|bytes| Self::Bytes(bytes.into()))
    }
}

#[cfg(test)]
mod tests;
