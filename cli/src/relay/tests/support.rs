//! A source that is filled, a relay, and a sink that is looked at.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use baler_common::transport::{Chunk, ChunkReader, ChunkWriter, OutboxSettings};
use baler_connector_testkit::{Label, MemoryMedium, PATIENCE, Pump, Tap, read_label};

use crate::relay::Relay;

/// Settings with short pauses.
pub(crate) fn settings() -> OutboxSettings {
    let mut settings = crate::relay::settings();
    settings.retry.min_delay = Duration::from_millis(1);
    settings.retry.max_delay = Duration::from_millis(5);
    settings
}

pub(crate) fn soon() -> Instant {
    Instant::now() + PATIENCE
}

/// A relay between two media.
pub(crate) fn relay(from: &MemoryMedium, to: &MemoryMedium) -> Relay {
    relay_of(from.reader(), to.writer())
}

pub(crate) fn relay_of(
    reader: impl ChunkReader + 'static,
    writer: impl ChunkWriter + 'static,
) -> Relay {
    Relay::new(Box::new(reader), Box::new(writer), settings())
}

/// Writes chunks into a medium; yields their labels.
pub(crate) fn fill(medium: &MemoryMedium, chunks: Vec<Chunk>) -> BTreeSet<Label> {
    let labels = chunks
        .iter()
        .map(|chunk| read_label(&chunk.bytes))
        .collect();
    let mut pump = Pump::open(Box::new(medium.writer()));
    pump.push(chunks);
    let by = soon();
    while !pump.is_done() {
        assert!(Instant::now() < by, "the source has no room");
        pump.step();
    }
    pump.close(soon());
    labels
}

/// Everything in a medium, in order, repetitions included.
pub(crate) fn contents(medium: &MemoryMedium) -> Tap {
    let mut tap = Tap::new(Box::new(medium.reader()));
    while tap.poll(Duration::ZERO) {}
    tap
}

/// Returns the different chunks that a medium holds.
pub(crate) fn set(tap: &Tap) -> BTreeSet<Label> {
    tap.received().iter().copied().collect()
}
