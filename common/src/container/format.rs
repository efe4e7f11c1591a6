//! Formats of bodies that crates outside of Baler add to the native container.

use std::fmt;

use super::error::{DecodeError, EncodeError};
use super::limits::Limits;
use crate::record::RecordBatch;

/// A format of the body of native chunks: the serializer of a batch beside its deserializer.
///
/// Prefix, header, compression and checksum stay those of the container. So a chunk of any format
/// has an identity and an account of losses, travels through every medium, and its damage is seen.
///
/// # What the implementer owes
///
/// [`deserialize`](Self::deserialize) gets bytes from elsewhere: it must not panic, and must check
/// lengths against [`Limits`] before it allocates.
///
/// # Why it has this shape
///
/// A format is a constant of its crate, as a [`Medium`](crate::transport) is. Both ends name it:
/// [`NativeSerializer::with_format`](super::NativeSerializer::with_format) and
/// [`ChunkDecoder::with_format`](super::ChunkDecoder::with_format).
pub trait BodyFormat: fmt::Debug + Sync {
    /// The number in the prefix of a chunk, at least [`FIRST_ADDED_NUMBER`]. Writers and readers
    /// agree on it.
    fn number(&self) -> u8;

    /// The name in tables and JSON.
    fn name(&self) -> &'static str;

    /// Appends the body of a batch.
    ///
    /// # Errors
    ///
    /// The format cannot hold the batch.
    fn serialize(&self, batch: &RecordBatch, out: &mut Vec<u8>) -> Result<(), EncodeError>;

    /// Reads a body: the records that were written, in their order.
    ///
    /// # Errors
    ///
    /// The bytes are not a body of this format, or ask for more than the limits.
    fn deserialize(&self, body: &[u8], limits: &Limits) -> Result<RecordBatch, DecodeError>;
}

/// The first number of a body format or compression from another crate: the numbers below are
/// Baler's own.
pub const FIRST_ADDED_NUMBER: u8 = 0x80;

/// Refuses a number that Baler keeps for its own formats and compressions.
///
/// # Errors
///
/// [`EncodeError::ReservedNumber`].
pub(super) fn check_number(
    what: &'static str,
    name: &'static str,
    number: u8,
) -> Result<(), EncodeError> {
    match number < FIRST_ADDED_NUMBER {
        true => Err(EncodeError::ReservedNumber { what, name, number }),
        false => Ok(()),
    }
}
