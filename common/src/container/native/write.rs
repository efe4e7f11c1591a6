//! What every part of the encoder needs.

use crate::container::num::to_u64;
use crate::container::varint;

/// Appends what `write` appends, with its length as a variable-length number before it.
///
/// The length is known only afterwards: room is left for one like `expected`, and what was written is
/// moved where it turns out to take more or fewer bytes.
pub(super) fn prefixed_by_length(
    out: &mut Vec<u8>,
    expected: usize,
    write: impl FnOnce(&mut Vec<u8>),
) {
    let start = out.len();
    varint::write(out, to_u64(expected));
    let from = out.len();
    write(out);
    let length = to_u64(out.len().saturating_sub(from));
    let (bytes, size) = varint::bytes(length);
    let bytes = bytes.get(..size).unwrap_or_default();
    match out.get_mut(start..from) {
        Some(to) if to.len() == size => to.copy_from_slice(bytes),
        _ => drop(out.splice(start..from, bytes.iter().copied())),
    }
}

/// Appends the length of a text in bytes, then the text.
pub(super) fn text(out: &mut Vec<u8>, text: &str) {
    varint::write(out, to_u64(text.len()));
    out.extend_from_slice(text.as_bytes());
}
