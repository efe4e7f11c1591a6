//! The text of strings while they are read.

use super::hex;
use super::split::MAX_WORD_BYTES;

/// What is said again is copied by so many bytes: most beginnings in one go.
pub(super) const BLOCK: usize = 64;

/// Text that grows up to a size that was declared.
pub(super) struct Text<'a> {
    /// Longer than the text will be, so that a word is copied with what is behind it: that is
    /// overwritten or cut off.
    pub(super) bytes: &'a mut [u8],
    pub(super) len: usize,
    pub(super) most: usize,
}

/// The text would be longer than was declared.
pub(super) struct Full;

impl Text<'_> {
    /// Makes room for so many bytes more, and says where.
    fn room(&mut self, bytes: usize) -> Result<usize, Full> {
        let at = self.len;
        if bytes > self.most - at {
            return Err(Full);
        }
        self.len = at + bytes;
        Ok(at)
    }

    pub(super) fn add(&mut self, more: &[u8]) -> Result<(), Full> {
        let at = self.room(more.len())?;
        let to = self.bytes.get_mut(at..self.len).ok_or(Full)?;
        to.copy_from_slice(more);
        Ok(())
    }

    /// Adds what is there already.
    pub(super) fn repeat(&mut self, mut from: usize, bytes: usize) -> Result<(), Full> {
        let mut at = self.room(bytes)?;
        while at < self.len {
            let block: [u8; BLOCK] = *block_at(self.bytes, from).ok_or(Full)?;
            *block_at(self.bytes, at).ok_or(Full)? = block;
            at += BLOCK;
            from += BLOCK;
        }
        Ok(())
    }

    pub(super) fn hex(&mut self, packed: &[u8]) -> Result<(), Full> {
        let at = self.room(packed.len().saturating_mul(2))?;
        let to = self.bytes.get_mut(at..self.len).ok_or(Full)?;
        hex::unpack(packed, to);
        Ok(())
    }
}

/// The bytes of a word that begins there.
#[inline(always)]
pub(super) fn word_at(text: &mut [u8], at: usize) -> Option<&mut [u8; MAX_WORD_BYTES]> {
    block_at(text, at)
}

/// So many bytes from there on.
#[inline(always)]
fn block_at<const BYTES: usize>(text: &mut [u8], at: usize) -> Option<&mut [u8; BYTES]> {
    text.get_mut(at..at.checked_add(BYTES)?)?.first_chunk_mut()
}
