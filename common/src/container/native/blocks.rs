//! The body, cut into blocks that are compressed separately; FORMAT.md, "Blocks".

use crate::container::codec::{CODE_NONE, Compressor, Decompressor};
use crate::container::compression::Compression;
use crate::container::cursor::Cursor;
use crate::container::error::{DecodeError, DecodeErrorKind, EncodeError};
use crate::container::limits::Limits;
use crate::container::varint::{self, prefixed_by_length};
use crate::number::to_u64;

/// The most blocks of a body.
const MAX_BLOCKS: usize = 16;

/// The limit of the ratio does not apply to bodies up to this size: they are harmless.
const RATIO_EXEMPT_BYTES: usize = 1 << 20;

/// Appends the body as one block, compressed if that makes it smaller. An empty body has no block.
pub(super) fn write(
    body: &[u8],
    compressor: &mut Compressor,
    out: &mut Vec<u8>,
) -> Result<(), EncodeError> {
    if body.is_empty() {
        return Ok(());
    }
    if let Some((code, stored)) = compressor.compress(body)? {
        let size = to_u64(stored.len());
        if stored.len() + varint::encoded_len(size) < body.len() {
            out.push(code);
            varint::write(out, to_u64(body.len()));
            varint::write(out, size);
            out.extend_from_slice(stored);
            return Ok(());
        }
    }
    write_plain(body.len(), |out| out.extend_from_slice(body), out);
    Ok(())
}

/// Appends the body that `write` appends as one block without compression. `expected` is its
/// approximate size; returns its real size.
pub(super) fn write_plain(
    expected: usize,
    write: impl FnOnce(&mut Vec<u8>),
    out: &mut Vec<u8>,
) -> usize {
    let start = out.len();
    out.push(CODE_NONE);
    let mut length = 0;
    prefixed_by_length(out, expected, |out| {
        let from = out.len();
        write(out);
        length = out.len() - from;
    });
    if length == 0 {
        // An empty body has no block.
        out.truncate(start);
    }
    length
}

/// The blocks of a chunk, still compressed, with checked sizes.
#[derive(Debug)]
pub(super) struct Blocks<'a> {
    blocks: Vec<Block<'a>>,
    /// The bytes of the decompressed body.
    pub(super) raw_bytes: usize,
    /// The stored bytes of the blocks, without their sizes.
    pub(super) stored_bytes: usize,
}

#[derive(Debug)]
struct Block<'a> {
    at: Cursor<'a>,
    code: u8,
    raw_bytes: usize,
    stored: &'a [u8],
}

impl<'a> Blocks<'a> {
    /// Reads the blocks' sizes up to the end of `cursor`.
    pub(super) fn read(cursor: &mut Cursor<'a>, limits: &Limits) -> Result<Self, DecodeError> {
        let start = cursor.clone();
        let mut blocks = Vec::new();
        let (mut raw_total, mut stored_total) = (0_usize, 0_usize);
        while !cursor.is_empty() {
            let at = cursor.clone();
            if blocks.len() == MAX_BLOCKS {
                let found = to_u64(MAX_BLOCKS + 1);
                return Err(at.over_limit("the number of blocks", found, MAX_BLOCKS));
            }
            let code = cursor.u8("a block's compression")?;
            let left = limits.body_bytes - raw_total;
            let size_at = cursor.clone();
            let raw_bytes =
                cursor
                    .count(left, "a block's size")
                    .map_err(|error| match error.kind {
                        DecodeErrorKind::Limit { found, .. } => size_at.over_limit(
                            "a block's size",
                            found.saturating_add(to_u64(raw_total)),
                            limits.body_bytes,
                        ),
                        _ => error,
                    })?;
            if raw_bytes == 0 {
                let kind = DecodeErrorKind::Invalid { found: 0 };
                return Err(size_at.error("a block's size", kind));
            }
            let stored = match code {
                CODE_NONE => cursor.take(raw_bytes, "a block")?,
                _ => cursor.section("a block")?.take_rest(),
            };
            raw_total += raw_bytes;
            stored_total += stored.len();
            blocks.push(Block {
                at,
                code,
                raw_bytes,
                stored,
            });
        }
        let most = stored_total.saturating_mul(limits.ratio);
        if raw_total > RATIO_EXEMPT_BYTES && raw_total > most {
            return Err(start.over_limit("the body's size", to_u64(raw_total), most));
        }
        Ok(Self {
            blocks,
            raw_bytes: raw_total,
            stored_bytes: stored_total,
        })
    }

    /// Returns the compression of the body: the first compression of a compressed block.
    pub(super) fn compression(
        &self,
        decompressor: &Decompressor,
    ) -> Result<Compression, DecodeError> {
        let compressed = self.blocks.iter().find(|block| block.code != CODE_NONE);
        let Some(block) = compressed else {
            return Ok(Compression::None);
        };
        decompressor.compression(block.code).ok_or_else(|| {
            let kind = DecodeErrorKind::Unknown {
                what: "compression",
                number: block.code.into(),
            };
            block.at.error("a block's compression", kind)
        })
    }

    /// Returns the body: the decompressed blocks joined in `buffer`, or one block without
    /// compression in place.
    pub(super) fn body<'b>(
        &self,
        decompressor: &mut Decompressor,
        buffer: &'b mut Vec<u8>,
        limits: &Limits,
    ) -> Result<&'b [u8], DecodeError>
    where
        'a: 'b,
    {
        if let [only] = self.blocks.as_slice() {
            if only.code == CODE_NONE {
                return Ok(only.stored);
            }
        }
        buffer.clear();
        buffer.resize(self.raw_bytes, 0);
        let mut rest = buffer.as_mut_slice();
        for block in &self.blocks {
            let ends = || DecodeErrorKind::Ends {
                needed: block.raw_bytes,
                left: 0,
            };
            let (raw, behind) = rest
                .split_at_mut_checked(block.raw_bytes)
                .ok_or_else(|| block.at.error("a block", ends()))?;
            decompressor
                .decompress(block.code, block.stored, raw, limits.window_log)
                .map_err(|kind| block.at.error("a block", kind))?;
            rest = behind;
        }
        Ok(buffer)
    }
}
