//! What is measured: one case a row.

use std::fmt;

use baler_common::container::{
    ChunkSerializer, Compression, EncodeError, KiekerSerializer, NativeSerializer,
};
use baler_common::transport::ContainerKind;
use baler_connector_file::SyncPolicy;
use clap::ValueEnum;

use super::args::Args;

/// A part of the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Part {
    /// From `emit` to a writer that discards, encoding included.
    Emit,
    /// Batches to chunks alone.
    Encode,
    /// Chunks to batches alone.
    Decode,
    /// As `emit`, with every encoding.
    Null,
    /// From `emit` to a folder of segments; what is there is read and checked afterwards.
    File,
    /// From a folder of segments to decoded and checked records.
    FileRead,
    /// From `emit` over loopback to decoded and checked records, both ends in this process.
    Tcp,
}

impl Part {
    /// Its name in tables and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Emit => "emit",
            Self::Encode => "encode",
            Self::Decode => "decode",
            Self::Null => "null",
            Self::File => "file",
            Self::FileRead => "file-read",
            Self::Tcp => "tcp",
        }
    }

    const fn encodings(self) -> &'static [Encoding] {
        match self {
            Self::Emit => &Encoding::PLAIN,
            Self::Encode | Self::Decode | Self::Null => &Encoding::ALL,
            Self::File | Self::FileRead | Self::Tcp => &Encoding::USUAL,
        }
    }

    const fn threads(self) -> &'static [usize] {
        match self {
            Self::Emit => &[1, 2],
            _ => &[1],
        }
    }

    const fn syncs(self) -> &'static [Option<FileSync>] {
        match self {
            Self::File => &[Some(FileSync::None), Some(FileSync::Chunk)],
            _ => &[None],
        }
    }
}

/// Which container, and how it is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Encoding {
    /// Which container.
    pub container: ContainerKind,
    /// How its body is compressed; Kieker's never is.
    pub compression: Compression,
}

impl Encoding {
    const KIEKER: Self = Self {
        container: ContainerKind::Kieker,
        compression: Compression::None,
    };
    const PLAIN: [Self; 1] = [Self::native(Compression::None)];
    const ALL: [Self; 5] = [
        Self::native(Compression::None),
        Self::native(Compression::Lz4),
        Self::native(Compression::Zstd { level: 1 }),
        Self::native(Compression::Zstd { level: 3 }),
        Self::KIEKER,
    ];
    const USUAL: [Self; 3] = [
        Self::native(Compression::None),
        Self::native(Compression::Zstd { level: 1 }),
        Self::KIEKER,
    ];

    const fn native(compression: Compression) -> Self {
        Self {
            container: ContainerKind::Native,
            compression,
        }
    }

    /// A serializer of it.
    ///
    /// # Errors
    ///
    /// The compression's library refuses.
    pub(super) fn serializer(self) -> Result<Box<dyn ChunkSerializer>, EncodeError> {
        Ok(match self.container {
            ContainerKind::Kieker => Box::new(KiekerSerializer::new()),
            ContainerKind::Native => Box::new(NativeSerializer::new(self.compression)?),
        })
    }
}

/// Both, in one column of a table.
impl fmt::Display for Encoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.compression {
            Compression::None => self.container.fmt(f),
            compression => write!(f, "{} {compression}", self.container),
        }
    }
}

/// When written files are forced to stable storage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileSync {
    /// Before a chunk is confirmed.
    Chunk,
    /// Never.
    None,
}

impl FileSync {
    /// Its name in tables and JSON, that of the URI's setting.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Chunk => "chunk",
            Self::None => "none",
        }
    }

    pub(super) const fn policy(self) -> SyncPolicy {
        match self {
            Self::Chunk => SyncPolicy::Chunk,
            Self::None => SyncPolicy::None,
        }
    }
}

/// What is measured for one row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Case {
    /// Which part of the way.
    pub part: Part,
    /// How many records a chunk has.
    pub chunk_records: usize,
    /// How chunks are encoded.
    pub encoding: Encoding,
    /// How many threads emit; 1 where nothing is emitted.
    pub threads: usize,
    /// For `file`: when it is forced to the disk.
    pub sync: Option<FileSync>,
}

impl Case {
    /// All that were asked for, in the order of the table.
    pub(super) fn all(args: &Args) -> Vec<Self> {
        let parts = Part::value_variants().iter();
        let mut cases = Vec::new();
        for part in parts.filter(|part| args.only.is_empty() || args.only.contains(part)) {
            for chunk_records in args.chunk_records.iter().copied() {
                for encoding in part.encodings() {
                    for threads in part.threads() {
                        cases.extend(part.syncs().iter().map(|sync| Self {
                            part: *part,
                            chunk_records: usize::try_from(chunk_records).unwrap_or(usize::MAX),
                            encoding: *encoding,
                            threads: *threads,
                            sync: *sync,
                        }));
                    }
                }
            }
        }
        cases
    }
}
