//! Baler's probes, with more and more of what is behind them.

use std::time::Duration;

use baler_connector_file::{FileWriter, FileWriterConfig};
use baler_monitoring::{Clock, Controller, ControllerBuilder, Overflow, probe};

use super::controlled::{Controlled, Other, Taken, null};
use super::ends::{Discarding, Receiver, Refusing};
use super::variant::{Running, Variant};
use crate::failure::Failure;
use crate::monitored;

/// How long a thread waits with `block-timeout` before its record is dropped.
const BLOCK_TIMEOUT: Duration = Duration::from_millis(1);

/// The variants with a probe of Baler's.
pub(super) const VARIANTS: &[Variant] = &[
    Variant::new(
        "deactivated",
        "the probe of an operation, while monitoring is switched off",
        |_| start(null().enabled(false), Taken::Nothing),
    ),
    Variant::new(
        "deactivated-pattern",
        "the probe of an operation that a pattern deactivates, while monitoring is on",
        |_| start(null(), Taken::Deactivated),
    ),
    Variant::new(
        "collection",
        "records are made and put into the thread's queue, which nobody empties: they are \
                overwritten",
        |_| {
            let stalled = Controller::builder(Box::new(Refusing::default())).unconfirmed_chunks(1);
            start(stalled.overflow(Overflow::DropOldest), Taken::Stalled)
        },
    ),
    Variant::new(
        "queue",
        "queue and collector, which discards records without encoding them",
        |_| lossless(null().serializer(Discarding)),
    ),
    Variant::new(
        "operation",
        "operation execution records through queue, collector and encoding to a writer that \
                discards; blocking when the queue is full",
        |_| lossless(null()),
    ),
    Variant::new(
        "operation-system-clock",
        "as operation, with the clock of systems whose processor's counter cannot be trusted",
        |_| lossless(null().clock(Clock::System)),
    ),
    Variant::new(
        "operation-drop-newest",
        "as operation, but what finds the queue full is dropped",
        |_| start(null().overflow(Overflow::DropNewest), Taken::All),
    ),
    Variant::new(
        "operation-drop-oldest",
        "as operation, but a full queue is overwritten: the circular queue",
        |_| start(null().overflow(Overflow::DropOldest), Taken::All),
    ),
    Variant::new(
        "operation-block-timeout",
        "as operation, but what waited for 1 ms is dropped",
        |_| {
            let overflow = Overflow::BlockTimeout(BLOCK_TIMEOUT);
            start(null().overflow(overflow), Taken::All)
        },
    ),
    Variant::new(
        "chunk-1",
        "as operation, with a chunk for each record",
        |_| lossless(null().chunk_records(1)),
    ),
    Variant::new(
        "chunk-16",
        "as operation, with 16 records a chunk, Kieker's default",
        |_| lossless(null().chunk_records(16)),
    ),
    Variant::new(
        "chunk-128",
        "as operation, with 128 records a chunk",
        |_| lossless(null().chunk_records(128)),
    ),
    Variant::new(
        "chunk-8192",
        "as operation, with 8,192 records a chunk",
        |_| lossless(null().chunk_records(8_192)),
    ),
    Variant::new(
        "file",
        "as operation, but to files in the temporary folder, without fsync",
        |_| {
            let folder = tempfile::tempdir().map_err(Failure::cannot("make a folder"))?;
            let writer = FileWriter::new(FileWriterConfig::new(folder.path()));
            let builder = Controller::builder(Box::new(writer));
            with_end(builder, Other::Folder(folder))
        },
    ),
    Variant::new(
        "tcp",
        "as operation, but over loopback to a receiver in the same process, which settles \
                and discards",
        |_| {
            let receiver = Receiver::start()?;
            let builder = Controller::builder(receiver.writer());
            with_end(builder, Other::Receiver(receiver))
        },
    ),
];

monitored! { #[probe] fn operation {} }

fn start(builder: ControllerBuilder, taken: Taken) -> Result<Box<dyn Running>, Failure> {
    Controlled::start(builder, operation, taken, Other::Nothing)
}

fn lossless(builder: ControllerBuilder) -> Result<Box<dyn Running>, Failure> {
    start(builder.overflow(Overflow::Block), Taken::All)
}

fn with_end(builder: ControllerBuilder, end: Other) -> Result<Box<dyn Running>, Failure> {
    let builder = builder.overflow(Overflow::Block);
    Controlled::start(builder, operation, Taken::All, end)
}
