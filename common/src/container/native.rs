//! Baler's own container; FORMAT.md, "The native container".
//!
//! ```text
//! prefix | header | blocks = compressed body | checksum
//! ```
//!
//! - `prefix`: magic, version, length and the two checksums.
//! - `head`: the information of a chunk beside its records.
//! - `blocks`: the body cut into compressed blocks.
//! - `columnar`: Baler's own format of a body; `BodyFormat` adds others.

mod blocks;
mod columnar;
mod decode;
mod head;
mod prefix;
mod serializer;

pub use decode::NativeDeserializer;
pub use head::native_identity;
pub(super) use prefix::{MAGIC, PREFIX_BYTES, declared_bytes};
pub use serializer::NativeSerializer;
