//! What a source did and sees.

use baler_common::container::Losses;
use baler_common::transport::ReaderStats;

use crate::lanes::Gap;

/// What a source did.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct SourceReport {
    /// Chunks decoded and handed on.
    pub chunks: u64,
    /// Records in them.
    pub records: u64,
    /// Bytes of them, as received.
    pub bytes: u64,
    /// Chunks settled as processed.
    pub acknowledged: u64,
    /// Chunks given back because a stage failed.
    pub given_back: u64,
    /// Chunks, or bytes that should have been one, that were put aside.
    pub quarantined: u64,
    /// Deliveries that the medium marked as repeated.
    pub redelivered: u64,
    /// Copies of chunks that this reader had settled before; not processed again.
    pub duplicates: u64,
    /// Chunks too late to tell whether they had been settled; processed.
    pub unverifiable: u64,
    /// Settlements that came too late: the delivery had gone to another reader.
    pub stale: u64,
    /// Failures of the medium from which the reader recovers by itself.
    pub transport_errors: u64,
    /// Lanes seen, and how many of them have ended.
    pub lanes: usize,
    /// Lanes whose producer's last chunk was seen.
    pub complete_lanes: usize,
    /// Chunks that never came, lane by lane.
    pub gaps: Vec<Gap>,
    /// Records that producers lost before they were sent, by reason.
    pub producer_losses: Losses,
    /// Chunks in work: received and not settled.
    pub in_work: usize,
    /// How many lanes of the medium the reader owns; nothing where the medium assigns none.
    pub assigned: Option<usize>,
    /// What the reader says of its medium: lag, rebalances, reconnects.
    pub reader: ReaderStats,
}
