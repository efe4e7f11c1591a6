//! The contract that every connector passes, with each way to force data to disk.

use std::num::NonZeroUsize;

use baler_common::transport::{ChunkReader, ChunkWriter};
use baler_connector_file::{
    FileReader, FileReaderConfig, FileWriter, FileWriterConfig, SyncPolicy,
};
use baler_connector_testkit::TestMedium;
use tempfile::TempDir;

/// A folder with one named consumer.
struct Folder {
    folder: TempDir,
    sync: SyncPolicy,
}

impl Folder {
    fn with(sync: SyncPolicy) -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            sync,
        }
    }
}

impl TestMedium for Folder {
    fn fresh() -> Self {
        Self::with(SyncPolicy::Chunk)
    }

    fn writer(&mut self) -> Box<dyn ChunkWriter> {
        let mut config = FileWriterConfig::new(self.folder.path().join("chunks"));
        config.sync = self.sync;
        config.segment_bytes = 10_000.try_into().unwrap();
        config.max_chunk_bytes = NonZeroUsize::new(16_384).unwrap();
        config.window_chunks = NonZeroUsize::new(16).unwrap();
        Box::new(FileWriter::new(config))
    }

    fn reader(&mut self) -> Box<dyn ChunkReader> {
        let mut config = FileReaderConfig::new(self.folder.path().join("chunks"));
        config.follow = true;
        config.consumer = Some("contract".parse().unwrap());
        Box::new(FileReader::open(config).unwrap())
    }
}

mod sync_by_chunk {
    use super::Folder;
    baler_connector_testkit::contract_tests!(Folder: reads redelivers threads);
}

/// Nothing is forced to disk.
struct Unsynced(Folder);

impl TestMedium for Unsynced {
    fn fresh() -> Self {
        Self(Folder::with(SyncPolicy::None))
    }

    fn writer(&mut self) -> Box<dyn ChunkWriter> {
        self.0.writer()
    }

    fn reader(&mut self) -> Box<dyn ChunkReader> {
        self.0.reader()
    }
}

mod without_sync {
    use super::Unsynced;
    baler_connector_testkit::contract_tests!(Unsynced: reads redelivers threads);
}
