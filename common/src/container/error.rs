//! The possible errors of a chunk, and their positions.

use crate::transport::ContainerKind;

/// A batch cannot be written as a chunk.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EncodeError {
    /// The container distinguishes types only by name, and the batch has two with the same name.
    #[error("the container {container} cannot hold two versions of {record} in one chunk")]
    Ambiguous {
        /// The container.
        container: ContainerKind,
        /// The record type.
        record: Box<str>,
    },
    /// The compression was left out of this build.
    #[error("{compression} is not part of this build")]
    CompressionMissing {
        /// The compression's name.
        compression: &'static str,
    },
    /// The compressor failed.
    #[error("{compression} failed: {message}")]
    Compression {
        /// The compression's name.
        compression: &'static str,
        /// The compressor's message.
        message: Box<str>,
    },
    /// A body format or compression from another crate has a number that is reserved for Baler.
    #[error("the {what} {name} has the number {number}; use one from 128 to 255")]
    ReservedNumber {
        /// A body format or a compression.
        what: &'static str,
        /// Its name.
        name: &'static str,
        /// Its number.
        number: u8,
    },
    /// The chunk would be above 4 GiB, or above the given limit.
    #[error("the chunk would have {bytes} bytes, more than {limit}")]
    TooLarge {
        /// The size that it would have, in bytes.
        bytes: usize,
        /// The limit, in bytes.
        limit: usize,
    },
    /// The container cannot hold a field's type.
    #[error("the container {container} cannot hold {record}.{field} of type {field_type}")]
    Unsupported {
        /// The container.
        container: ContainerKind,
        /// The record type.
        record: Box<str>,
        /// The field.
        field: Box<str>,
        /// The field's type.
        field_type: Box<str>,
    },
}

/// A chunk cannot be decoded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("byte {offset}: {kind} while reading {reading}")]
pub struct DecodeError {
    /// The position in the chunk, or in its decompressed body if `in_body`, in bytes.
    pub offset: usize,
    /// Whether `offset` counts from the start of the decompressed body.
    pub in_body: bool,
    /// The item that was being read.
    pub reading: &'static str,
    /// The error.
    pub kind: DecodeErrorKind,
}

/// The kinds of errors in a chunk.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeErrorKind {
    /// The checksum does not match: the bytes were changed.
    #[error("checksum {found:08x} instead of {computed:08x}")]
    Checksum {
        /// The checksum in the chunk.
        found: u32,
        /// The checksum of its bytes.
        computed: u32,
    },
    /// Decompression failed.
    #[error("the compressed data is broken ({message})")]
    Compression {
        /// The decompressor's message.
        message: Box<str>,
    },
    /// The compression was left out of this build.
    #[error("{compression} is not part of this build")]
    CompressionMissing {
        /// The compression's name.
        compression: &'static str,
    },
    /// The chunk was compressed with a dictionary that this reader does not have.
    #[error("the dictionary {id} is missing, with which it was compressed")]
    DictionaryMissing {
        /// The dictionary's id.
        id: u32,
    },
    /// The bytes end too early.
    #[error("the data ends: {needed} bytes needed, {left} left")]
    Ends {
        /// The number of bytes needed.
        needed: usize,
        /// The number of bytes left.
        left: usize,
    },
    /// The number is not allowed there.
    #[error("{found} is not allowed here")]
    Invalid {
        /// The number.
        found: u64,
    },
    /// A declared length differs from the real one.
    #[error("the length {declared} is declared, {found} is there")]
    Length {
        /// The declared length.
        declared: u64,
        /// The real one.
        found: u64,
    },
    /// A limit of the decoder is exceeded.
    #[error("{found} is above the limit of {limit}")]
    Limit {
        /// The limit.
        limit: u64,
        /// The chunk's value.
        found: u64,
    },
    /// The bytes do not follow a body format or container from another crate.
    #[error("{message}")]
    Malformed {
        /// The reason.
        message: Box<str>,
    },
    /// A schema in the chunk is not possible.
    #[error("the schema is wrong: {0}")]
    Schema(crate::record::SchemaError),
    /// There are bytes after the end.
    #[error("{bytes} bytes follow the end")]
    Trailing {
        /// The number of bytes.
        bytes: usize,
    },
    /// The chunk needs a compression, a body format or a feature that this version does not know.
    #[error("{what} {number} is unknown to this version")]
    Unknown {
        /// A compression, a body format or a feature.
        what: &'static str,
        /// Its number.
        number: u64,
    },
    /// No container has this magic.
    #[error("the magic {found:02x?} is no container's")]
    UnknownContainer {
        /// The first bytes, at most four.
        found: Vec<u8>,
    },
    /// Kieker's container names a record class whose schema in the catalog it cannot hold.
    #[error("the container cannot hold {record}.{field} of type {field_type}")]
    UnfitRecordType {
        /// The record type.
        record: Box<str>,
        /// The field.
        field: Box<str>,
        /// The field's type.
        field_type: Box<str>,
    },
    /// Kieker's container names a record class for which there is no schema.
    #[error(
        "the record type {name} is not in the catalog (--schemas PATH, or schema=PATH in the URI, adds types)"
    )]
    UnknownRecordType {
        /// The type's name.
        name: Box<str>,
    },
    /// Text is not UTF-8.
    #[error("the text is not UTF-8")]
    Utf8,
    /// A variable-length number is longer than its type or than necessary.
    #[error("the variable-length number is malformed")]
    Varint,
    /// The chunk names a type by number, and the decoder has no table of such types. The table of
    /// Kieker's types is `WELL_KNOWN_TYPES` in `baler-connector-kieker`; `baler::decoder` has it.
    #[error(
        "the well-known type {number} is unknown, because the decoder has no table of such types \
         (ChunkDecoder::with_well_known_types)"
    )]
    WellKnownTypesMissing {
        /// The number of the type.
        number: u64,
    },
}
