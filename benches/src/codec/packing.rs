//! Compression around a whole chunk, for formats that have none of their own.

use std::fmt::Display;

use baler_common::container::Compression;
use lz4_flex::block::{
    CompressTable, compress_into_with_table, decompress_into, get_maximum_output_size,
};

use crate::Failure;

/// Bytes of the length before a block of lz4, which does not contain it.
const LENGTH_BYTES: usize = 4;

/// Compresses chunks and decompresses them, and keeps its tables and memory between chunks.
pub(super) enum Packing {
    None,
    Lz4(Box<CompressTable>),
    Zstd(
        zstd::bulk::Compressor<'static>,
        zstd::bulk::Decompressor<'static>,
    ),
}

impl Packing {
    pub(super) fn new(compression: Compression) -> Result<Self, Failure> {
        Ok(match compression {
            Compression::Added { .. } => {
                return Err(Failure::new(
                    "only Baler's own container has this compression",
                ));
            }
            Compression::None => Self::None,
            Compression::Lz4 => Self::Lz4(Box::default()),
            Compression::Zstd { level } => Self::Zstd(
                zstd::bulk::Compressor::new(level).map_err(failed())?,
                zstd::bulk::Decompressor::new().map_err(failed())?,
            ),
        })
    }

    /// Returns the chunk as it is sent: `chunk` itself or the contents of `out`.
    pub(super) fn pack<'a>(
        &mut self,
        chunk: &'a [u8],
        out: &'a mut Vec<u8>,
    ) -> Result<&'a [u8], Failure> {
        out.clear();
        match self {
            Self::None => return Ok(chunk),
            Self::Lz4(table) => {
                out.resize(LENGTH_BYTES + get_maximum_output_size(chunk.len()), 0);
                let (length, block) = out.split_at_mut(LENGTH_BYTES);
                let before = u32::try_from(chunk.len()).map_err(failed())?;
                length.copy_from_slice(&before.to_le_bytes());
                let after = compress_into_with_table(chunk, block, table).map_err(failed())?;
                out.truncate(LENGTH_BYTES + after);
            }
            Self::Zstd(compressor, _) => {
                out.reserve(zstd::zstd_safe::compress_bound(chunk.len()));
                let compressed = compressor.compress_to_buffer(chunk, out);
                compressed.map_err(failed())?;
            }
        }
        Ok(out)
    }

    /// Returns the chunk before packing: `sent` itself or the contents of `out`.
    pub(super) fn unpack<'a>(
        &mut self,
        sent: &'a [u8],
        out: &'a mut Vec<u8>,
    ) -> Result<&'a [u8], Failure> {
        out.clear();
        match self {
            Self::None => return Ok(sent),
            Self::Lz4(_) => {
                let (length, block) = sent
                    .split_first_chunk::<LENGTH_BYTES>()
                    .ok_or_else(|| Failure::new("a block has no length"))?;
                let length = usize::try_from(u32::from_le_bytes(*length)).map_err(failed())?;
                out.resize(length, 0);
                decompress_into(block, out).map_err(failed())?;
            }
            Self::Zstd(_, decompressor) => {
                let length = zstd::zstd_safe::get_frame_content_size(sent)
                    .ok()
                    .flatten()
                    .and_then(|length| usize::try_from(length).ok())
                    .ok_or_else(|| Failure::new("a frame has no length"))?;
                out.reserve(length);
                let decompressed = decompressor.decompress_to_buffer(sent, out);
                decompressed.map_err(failed())?;
            }
        }
        Ok(out)
    }
}

fn failed<E: Display>() -> impl Fn(E) -> Failure {
    Failure::cannot("compress")
}

#[cfg(test)]
mod tests;
