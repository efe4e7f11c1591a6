//! Encodes batches of records as chunks and decodes them. FORMAT.md describes every byte.
//!
//! ```text
//! RecordBatch + ChunkHeader -> ChunkSerializer -> bytes -> ChunkDecoder -> DecodedChunk
//! ```
//!
//! [`NativeSerializer`] writes Baler's own container.
//! [`ChunkDecoder`] finds the [`ChunkDeserializer`] of a chunk by its magic.
//! Other crates add containers, such as Kieker's, and a [`BodyFormat`] or [`BlockCompression`] to the
//! native one.

mod codec;
mod compression;
#[doc(hidden)]
pub mod cursor;
mod decoded;
mod decoder;
#[cfg(feature = "zstd")]
mod dictionary;
mod error;
mod format;
mod header;
mod limits;
mod native;
#[doc(hidden)]
pub mod varint;
mod well_known;

pub use compression::{BlockCompression, Compression};
pub use decoded::{ChunkSummary, ColumnLayout, DecodedChunk, Layout};
pub use decoder::{ChunkDecoder, ChunkExtent};
#[cfg(feature = "zstd")]
pub use dictionary::{Dictionaries, Dictionary, DictionaryError};
pub use error::{DecodeError, DecodeErrorKind, EncodeError};
pub use format::{BodyFormat, ChunkDeserializer, ChunkSerializer, FIRST_ADDED_NUMBER};
pub use header::{ChunkHeader, ClockMapping, LossReason, Losses, LostChunks};
pub use limits::Limits;
pub use native::{NativeDeserializer, NativeSerializer, native_identity};
pub use well_known::WellKnownTypes;
