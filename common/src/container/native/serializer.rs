//! Encodes batches as native chunks.

use super::head::Head;
use super::prefix::{self, PREFIX_BYTES};
use super::{blocks, columnar};
use crate::container::codec::Compressor;
use crate::container::compression::{BlockCompression, Compression};
#[cfg(feature = "zstd")]
use crate::container::dictionary::Dictionary;
use crate::container::error::EncodeError;
use crate::container::format::{BodyFormat, ChunkSerializer, check_number};
use crate::container::header::ChunkHeader;
use crate::container::well_known::WellKnownTypes;
use crate::record::RecordBatch;
use crate::transport::ContainerKind;

/// Writes Baler's own container.
///
/// Equal batches and headers yield equal bytes.
/// Buffers and the compressor's tables are kept from chunk to chunk.
#[derive(Debug, Default)]
pub struct NativeSerializer {
    compressor: Compressor,
    /// The format of the bodies, unless it is columnar.
    format: Option<&'static dyn BodyFormat>,
    encoder: columnar::Encoder,
    body: Vec<u8>,
    /// The bytes of the last body, if it was not compressed.
    body_bytes: usize,
}

impl NativeSerializer {
    /// Creates a serializer that compresses bodies this way.
    ///
    /// # Errors
    ///
    /// [`EncodeError::CompressionMissing`] when the compression was left out of this build.
    pub fn new(compression: Compression) -> Result<Self, EncodeError> {
        Ok(Self {
            compressor: Compressor::new(compression)?,
            ..Self::default()
        })
    }

    /// Creates a serializer that compresses bodies by zstd at this level, with a dictionary.
    /// Readers then need the dictionary, too
    /// ([`ChunkDecoder::with_dictionaries`](crate::container::ChunkDecoder::with_dictionaries)).
    ///
    /// # Errors
    ///
    /// [`EncodeError::Compression`] when the dictionary or the level is refused.
    #[cfg(feature = "zstd")]
    pub fn with_dictionary(level: i32, dictionary: &Dictionary) -> Result<Self, EncodeError> {
        Ok(Self {
            compressor: Compressor::with_dictionary(level, dictionary)?,
            ..Self::default()
        })
    }

    /// Creates a serializer with a compression from another crate. Readers then need it, too
    /// ([`ChunkDecoder::with_compression`](crate::container::ChunkDecoder::with_compression)).
    ///
    /// # Errors
    ///
    /// [`EncodeError::ReservedNumber`] when its number is one of Baler's own.
    pub fn with_compression(
        compression: &'static dyn BlockCompression,
    ) -> Result<Self, EncodeError> {
        Ok(Self {
            compressor: Compressor::added(compression)?,
            ..Self::default()
        })
    }

    /// Changes the format of bodies. Readers then need it, too
    /// ([`ChunkDecoder::with_format`](crate::container::ChunkDecoder::with_format)).
    ///
    /// # Errors
    ///
    /// [`EncodeError::ReservedNumber`] when its number is one of Baler's own.
    pub fn with_format(mut self, format: &'static dyn BodyFormat) -> Result<Self, EncodeError> {
        check_number("body format", format.name(), format.number())?;
        self.format = Some(format);
        Ok(self)
    }

    /// Sets the types that chunks name by number. Readers then need the table, too
    /// ([`ChunkDecoder::with_well_known_types`](crate::container::ChunkDecoder::with_well_known_types)).
    #[must_use]
    pub fn with_well_known_types(mut self, types: &'static WellKnownTypes) -> Self {
        self.set_well_known_types(types);
        self
    }

    fn write(
        &mut self,
        batch: &RecordBatch,
        header: &ChunkHeader,
        out: &mut Vec<u8>,
    ) -> Result<usize, EncodeError> {
        let head = Head {
            header,
            records: batch.len(),
            types: columnar::types_of(batch).count(),
            strings: batch.strings().len(),
            time_span: batch.time_span(),
        };
        let start = out.len();
        out.extend_from_slice(&[0; PREFIX_BYTES]);
        head.write(out);
        let encoder = &mut self.encoder;
        if self.format.is_none() && self.compressor.is_none() {
            // A body without compression is written directly to the output.
            let encode = |out: &mut Vec<u8>| encoder.encode(batch, out);
            self.body_bytes = blocks::write_plain(self.body_bytes, encode, out);
            return prefix::seal(out, start, columnar::NUMBER);
        }
        self.body.clear();
        match self.format {
            Some(format) => format.serialize(batch, &mut self.body)?,
            None => encoder.encode(batch, &mut self.body),
        }
        blocks::write(&self.body, &mut self.compressor, out)?;
        let number = self.format.map_or(columnar::NUMBER, BodyFormat::number);
        prefix::seal(out, start, number)
    }
}

impl ChunkSerializer for NativeSerializer {
    fn container(&self) -> ContainerKind {
        ContainerKind::Native
    }

    fn set_well_known_types(&mut self, types: &'static WellKnownTypes) {
        self.encoder.set_well_known(types);
    }

    fn serialize(
        &mut self,
        batch: &RecordBatch,
        header: &ChunkHeader,
        out: &mut Vec<u8>,
    ) -> Result<usize, EncodeError> {
        let start = out.len();
        self.write(batch, header, out)
            .inspect_err(|_| out.truncate(start))
    }
}
