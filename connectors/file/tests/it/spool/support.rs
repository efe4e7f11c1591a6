//! A spool over a medium in memory, driven as its owner must.

use std::path::Path;
use std::time::{Duration, Instant};

use baler_connector_file::spool::{Spool, SpoolConfig, SpoolRoute, SpoolStatus, SpoolWatch};
use baler_connector_testkit::{ChunkSource, MemoryMedium, PATIENCE, Pump, Tap, within_patience};

/// Settings under which tests need no patience.
pub(crate) fn config(folder: &Path) -> SpoolConfig {
    let mut config = SpoolConfig::new(folder.join("spool"));
    config.spool_after = Duration::from_millis(20);
    config.retry.min_delay = Duration::from_millis(1);
    config.retry.max_delay = Duration::from_millis(10);
    config.commit_interval = Duration::from_millis(10);
    config
}

/// An open spool.
pub(crate) struct Sender {
    pub(crate) pump: Pump,
    pub(crate) watch: SpoolWatch,
    pub(crate) source: ChunkSource,
}

impl Sender {
    pub(crate) fn open(medium: &MemoryMedium, config: SpoolConfig) -> Self {
        Self::of_producer(medium, config, 1)
    }

    pub(crate) fn of_producer(medium: &MemoryMedium, config: SpoolConfig, producer: u64) -> Self {
        let spool = Spool::new(Box::new(medium.writer()), config);
        let watch = spool.watch();
        Self {
            pump: Pump::open(Box::new(spool)),
            watch,
            source: ChunkSource::new(producer),
        }
    }

    /// Sends chunks and waits until each is confirmed or spooled.
    pub(crate) fn send(&mut self, chunks: usize) {
        self.pump.push(self.source.take(chunks));
        self.wait_for("all is confirmed or spooled", |sender| {
            sender.pump.is_done()
        });
    }

    pub(crate) fn wait_for(&mut self, what: &str, done: impl Fn(&Self) -> bool) {
        within_patience(what, || {
            self.pump.step();
            done(self).then_some(())
        });
    }

    pub(crate) fn status(&self) -> SpoolStatus {
        self.watch.status()
    }

    pub(crate) fn wait_for_route(&mut self, route: SpoolRoute) {
        self.wait_for(route.name(), |sender| sender.status().route == route);
    }

    pub(crate) fn close(self) -> SpoolStatus {
        let (_, report) = self.pump.close(soon());
        assert_eq!(report.unconfirmed, Vec::<u64>::new());
        self.watch.status()
    }
}

pub(crate) fn soon() -> Instant {
    Instant::now() + PATIENCE
}

/// Takes all chunks of the medium.
pub(crate) fn receive(tap: &mut Tap) {
    while tap.poll(Duration::ZERO) {}
}

/// Checks the figures, which must add up at any time between two chunks.
pub(crate) fn assert_adds_up(status: &SpoolStatus) {
    let stats = &status.stats;
    assert_eq!(
        status.found_chunks + stats.spooled_chunks,
        stats.replayed_chunks + status.refused_chunks + status.lost_chunks + stats.waiting_chunks,
        "{status:#?}"
    );
    assert_eq!(
        status.found_records + stats.spooled_records,
        stats.replayed_records
            + status.refused_records
            + status.lost_records
            + status.waiting_records,
        "{status:#?}"
    );
}
