//! The measured cases, one for each row.

use baler_common::container::Compression;
use clap::ValueEnum;

use super::args::{Args, Codec};

/// The case of one row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Case {
    /// The format.
    pub codec: Codec,
    /// The number of records in a chunk.
    pub chunk_records: usize,
    /// The compression of chunks.
    pub compression: Compression,
}

impl Case {
    /// All requested cases, in the order of the table: rows to compare are side by side.
    pub(super) fn all(args: &Args) -> Vec<Self> {
        let mut cases = Vec::new();
        for chunk_records in &args.chunk_records {
            for compression in &args.compression {
                let codecs = Codec::value_variants()
                    .iter()
                    .filter(|codec| args.only.is_empty() || args.only.contains(codec));
                cases.extend(codecs.map(|codec| Self {
                    codec: *codec,
                    chunk_records: *chunk_records as usize,
                    compression: *compression,
                }));
            }
        }
        cases
    }
}

#[cfg(test)]
mod tests;
