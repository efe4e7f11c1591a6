//! Flushes that wait for the collector.

use std::sync::mpsc::SyncSender;

use super::drain::Marks;
use super::shared::FlushEnd;

/// A flush on its way.
pub(super) struct Flush {
    pub(super) done: SyncSender<FlushEnd>,
    pub(super) lost_before: u64,
    pub(super) stage: FlushStage,
}

pub(super) enum FlushStage {
    /// Until the queues have passed the marks.
    Draining(Marks),
    /// Until every chunk below this ticket has its fate.
    Confirming(u64),
}
