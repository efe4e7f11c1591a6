//! What can be wrong with a chunk, and where.

use crate::transport::ContainerKind;

/// A batch cannot be written as a chunk.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EncodeError {
    /// The container tells types apart by name, and the batch has two of one name.
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
        /// What it said.
        message: Box<str>,
    },
    /// A body format or compression from another crate has a number that Baler keeps for its own.
    #[error("the {what} {name} has the number {number}; use one from 128 to 255")]
    ReservedNumber {
        /// Which of the two it is.
        what: &'static str,
        /// Its name.
        name: &'static str,
        /// Its number.
        number: u8,
    },
    /// The chunk would be above 4 GiB, or above the limit that was set.
    #[error("the chunk would have {bytes} bytes, more than {limit}")]
    TooLarge {
        /// How many bytes it would have.
        bytes: usize,
        /// How many are allowed.
        limit: usize,
    },
    /// The container has no way to hold a field's type.
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
    /// How many bytes into the chunk, or into its decompressed body when `in_body`.
    pub offset: usize,
    /// Whether `offset` counts from the start of the decompressed body.
    pub in_body: bool,
    /// What was being read.
    pub reading: &'static str,
    /// What is wrong.
    pub kind: DecodeErrorKind,
}

/// What is wrong with a chunk.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeErrorKind {
    /// The checksum does not match: the bytes were altered on their way.
    #[error("checksum {found:08x} instead of {computed:08x}")]
    Checksum {
        /// What the chunk says.
        found: u32,
        /// What its bytes yield.
        computed: u32,
    },
    /// Decompression failed.
    #[error("the compressed data is broken ({message})")]
    Compression {
        /// What the decompressor said.
        message: Box<str>,
    },
    /// The compression was left out of this build.
    #[error("{compression} is not part of this build")]
    CompressionMissing {
        /// The compression's name.
        compression: &'static str,
    },
    /// The chunk was compressed with a dictionary that this reader was not given.
    #[error("the dictionary {id} is missing, with which it was compressed")]
    DictionaryMissing {
        /// The dictionary's id.
        id: u32,
    },
    /// The bytes are too few for what they should hold.
    #[error("the data ends: {needed} bytes needed, {left} left")]
    Ends {
        /// How many bytes were needed.
        needed: usize,
        /// How many were left.
        left: usize,
    },
    /// A number is not one of those that are allowed there.
    #[error("{found} is not allowed here")]
    Invalid {
        /// The number.
        found: u64,
    },
    /// A length that the chunk declares differs from what is there.
    #[error("the length {declared} is declared, {found} is there")]
    Length {
        /// The declared length.
        declared: u64,
        /// The real one.
        found: u64,
    },
    /// A limit of the decoder is passed.
    #[error("{found} is above the limit of {limit}")]
    Limit {
        /// The limit.
        limit: u64,
        /// What the chunk asks for.
        found: u64,
    },
    /// The bytes are not those of a body format or container from another crate.
    #[error("{message}")]
    Malformed {
        /// What is wrong.
        message: Box<str>,
    },
    /// A schema in the chunk cannot be.
    #[error("the schema is wrong: {0}")]
    Schema(crate::record::SchemaError),
    /// Bytes follow where nothing should.
    #[error("{bytes} bytes follow the end")]
    Trailing {
        /// How many.
        bytes: usize,
    },
    /// The chunk needs a compression, a body format or a feature that this version does not know.
    #[error("{what} {number} is unknown to this version")]
    Unknown {
        /// What it is.
        what: &'static str,
        /// Its number.
        number: u64,
    },
    /// The magic is not that of a container.
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
        "the record type {name} is not in the catalog (--schema FILE.irl, or schema=FILE.irl in the URI, adds types)"
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
}
