//! The measured cases, one for each row.

use baler_common::container::Compression;
use clap::ValueEnum;

use super::Args;

/// A format of self-contained chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, ValueEnum)]
pub enum Codec {
    /// Baler's own container.
    Columnar,
    /// Kieker's container: rows and a string table.
    Kieker,
    /// An object container file of Avro.
    Avro,
    /// Spans of OpenTelemetry's protocol.
    Otlp,
    /// Rows of postcard after a string table; its integers have variable length.
    Postcard,
}

impl Codec {
    /// Its name in tables, JSON and flags.
    pub fn name(self) -> String {
        let value = self.to_possible_value();
        value.map_or_else(String::new, |value| value.get_name().to_owned())
    }
}

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
