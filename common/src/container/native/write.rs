//! What every part of the encoder needs.

use crate::container::num::to_u64;
use crate::container::varint;

/// Appends what `write` appends, with its length as a variable-length number before it.
///
/// The length is known only afterwards: it is appended and then turned round with what precedes
/// it, which moves a few bytes and needs no second buffer.
pub(super) fn prefixed_by_length(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    write(out);
    let end = out.len();
    varint::write(out, to_u64(end.saturating_sub(start)));
    let length_bytes = out.len().saturating_sub(end);
    if let Some(section) = out.get_mut(start..) {
        section.rotate_right(length_bytes);
    }
}

/// Appends the length of a text in bytes, then the text.
pub(super) fn text(out: &mut Vec<u8>, text: &str) {
    varint::write(out, to_u64(text.len()));
    out.extend_from_slice(text.as_bytes());
}
