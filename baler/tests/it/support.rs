//! A record type, a folder to send it to, and waiting with a deadline.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use baler::{Controller, Record};
use tempfile::TempDir;

/// The time limit of any wait in a test.
pub(crate) const PATIENCE: Duration = Duration::from_secs(100);

#[derive(Debug, Clone, PartialEq, Record)]
#[record(name = "shop.Order")]
pub(crate) struct Order {
    pub(crate) id: u64,
    pub(crate) item: String,
}

#[derive(Debug, Clone, PartialEq, Record)]
#[record(name = "shop.Click")]
pub(crate) struct Click {
    pub(crate) page: u32,
}

pub(crate) fn order(id: u64) -> Order {
    Order {
        id,
        item: format!("item {}", id % 7),
    }
}

/// Held while a test installs controllers: `cargo test` runs many tests in one process.
pub(crate) fn one_at_a_time() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A folder as a medium whose reader remembers what it settled.
pub(crate) struct Folder(TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn writer(&self) -> String {
        format!("file://{}/chunks", self.0.path().display())
    }

    pub(crate) fn reader(&self) -> String {
        format!("{}?consumer=test&commit_interval=0", self.writer())
    }

    /// A name for something else beside the chunks.
    pub(crate) fn path(&self, name: &str) -> String {
        self.0.path().join(name).display().to_string()
    }
}

/// Starts a controller that sends chunks of this many records, without a metadata record.
pub(crate) fn controller(uri: &str, chunk_records: usize) -> Controller {
    let settings = |builder: baler::monitoring::ControllerBuilder| {
        builder
            .chunk_records(chunk_records)
            .metadata_record(false)
            .overflow(baler::monitoring::Overflow::Block)
    };
    Controller::with(uri, settings).unwrap()
}

/// Sends orders with the numbers from 0, until they are confirmed.
pub(crate) fn send_orders(uri: &str, orders: u64, chunk_records: usize) {
    let controller = controller(uri, chunk_records);
    for id in 0..orders {
        assert!(controller.emit(&order(id)));
    }
    let report = controller.shutdown(PATIENCE);
    assert_eq!(report.delivered(), orders, "{report}");
}

/// Polls until there is a result; panics at the deadline.
pub(crate) fn wait_for<T>(what: &str, mut poll: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = poll() {
            return found;
        }
        assert!(Instant::now() < end, "waited in vain for {what}");
        std::thread::park_timeout(Duration::from_millis(5));
    }
}
