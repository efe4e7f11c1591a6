//! The contract that every writer passes: straight through, by way of the disk, and with a disk
//! that takes nothing.

use std::time::Duration;

use baler_common::transport::{ChunkReader, ChunkWriter};
use baler_connector_file::spool::{Spool, SpoolConfig};
use baler_connector_testkit::{MemoryLimits, MemoryMedium, TestMedium};
use tempfile::TempDir;

struct Spooled {
    medium: MemoryMedium,
    folder: TempDir,
    spools: u32,
    change: fn(&mut SpoolConfig),
}

impl Spooled {
    fn with(change: fn(&mut SpoolConfig)) -> Self {
        let limits = MemoryLimits {
            max_chunk_bytes: 16_384.try_into().unwrap(),
            window_chunks: 16.try_into().unwrap(),
            window_bytes: 32_768.try_into().unwrap(),
            capacity_chunks: 64.try_into().unwrap(),
        };
        Self {
            medium: MemoryMedium::new(limits),
            folder: tempfile::tempdir().unwrap(),
            spools: 0,
            change,
        }
    }

    fn writer(&mut self) -> Box<dyn ChunkWriter> {
        self.spools += 1;
        // Each writer has a folder of its own.
        let folder = self.folder.path().join(self.spools.to_string());
        let mut config = SpoolConfig::new(folder);
        config.retry.max_delay = Duration::from_millis(20);
        (self.change)(&mut config);
        Box::new(Spool::new(Box::new(self.medium.writer()), config))
    }
}

macro_rules! medium {
    ($name:ident, $change:expr) => {
        struct $name(Spooled);

        impl TestMedium for $name {
            fn fresh() -> Self {
                Self(Spooled::with($change))
            }

            fn writer(&mut self) -> Box<dyn ChunkWriter> {
                self.0.writer()
            }

            fn reader(&mut self) -> Box<dyn ChunkReader> {
                Box::new(self.0.medium.reader())
            }

            fn break_connections(&mut self) {
                self.0.medium.break_connections();
            }

            fn stall(&mut self) {
                self.0.medium.hold_confirmations(true);
            }

            fn resume(&mut self) {
                self.0.medium.hold_confirmations(false);
            }
        }
    };
}

// A break does not reach the owner, and chunks without a confirmation at a close are on disk. So
// the groups `breaks` and `stalls` are left out.
medium!(Patient, |_| {});
medium!(Eager, |config| config.spool_after = Duration::ZERO);
// A folder below a file: there is no disk, and the writer works as without a spool.
medium!(WithoutDisk, |config| config.folder =
    "/dev/null/spool".into());

mod straight_through {
    use super::Patient;
    baler_connector_testkit::contract_tests!(Patient: reads redelivers many_writers many_readers);
}

mod spooling_at_once {
    use super::Eager;
    baler_connector_testkit::contract_tests!(Eager: reads redelivers many_writers many_readers);
}

mod without_a_disk {
    use super::WithoutDisk;
    baler_connector_testkit::contract_tests!(WithoutDisk: reads redelivers many_writers many_readers stalls);
}
