//! The header of a native chunk: its identity, its clock, and the losses.

use std::fmt;

use crate::transport::ChunkIdentity;

/// The information of a native chunk beside its records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChunkHeader {
    /// The identity of the chunk.
    pub identity: ChunkIdentity,
    /// Whether it is the last chunk of its epoch. Then its losses are complete.
    pub last_of_epoch: bool,
    /// Whether the clock jumped (suspend, step) since the last chunk.
    pub clock_jumped: bool,
    /// The mapping from ticks to nanoseconds, if columns hold ticks.
    pub clock: Option<ClockMapping>,
    /// Records lost in this epoch so far, by reason. The counts are cumulative, so a lost or
    /// repeated chunk does not make them wrong.
    pub losses: Losses,
    /// Chunks of this lane that got a number and were then given up by policy, oldest first. They
    /// explain gaps in the numbers.
    pub lost_chunks: Vec<LostChunks>,
}

impl ChunkHeader {
    /// Creates a header with only the identity of the chunk.
    pub fn new(identity: ChunkIdentity) -> Self {
        Self {
            identity,
            last_of_epoch: false,
            clock_jumped: false,
            clock: None,
            losses: Losses::default(),
            lost_chunks: Vec::new(),
        }
    }
}

/// The mapping from ticks of a clock to nanoseconds since the Unix epoch:
/// `anchor_unix_ns + ((ticks - anchor_ticks) * multiplier >> shift)`, computed in 128 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockMapping {
    /// The tick at which the mapping was made.
    pub anchor_ticks: u64,
    /// The time at that tick, in nanoseconds since the Unix epoch.
    pub anchor_unix_ns: i64,
    /// Nanoseconds a tick, times 2 to the power of `shift`.
    pub multiplier: u32,
    /// At most 63.
    pub shift: u8,
}

impl ClockMapping {
    /// Returns the time at this tick, in nanoseconds since the Unix epoch; saturates at the ends of
    /// `i64`.
    pub fn unix_ns(&self, ticks: u64) -> i64 {
        let elapsed = i128::from(ticks).wrapping_sub(i128::from(self.anchor_ticks));
        let nanos = elapsed.wrapping_mul(i128::from(self.multiplier)) >> self.shift.min(63);
        let time = i128::from(self.anchor_unix_ns).wrapping_add(nanos);
        i64::try_from(time).unwrap_or(if time < 0 { i64::MIN } else { i64::MAX })
    }
}

/// The reason of a loss. The numbers are part of the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum LossReason {
    /// The queue was full and the policy drops the newest record.
    QueueFullNewest,
    /// The queue was full and the policy drops the oldest records.
    QueueFullOldest,
    /// The queue stayed full for the time that the policy blocks.
    BlockTimeout,
    /// The collector was shutting down or gone when the record was emitted.
    Shutdown,
    /// One record alone is above the largest chunk; it went to quarantine.
    TooLarge,
    /// The container cannot hold the record, or its row does not follow its schema.
    NotEncodable,
    /// The medium refused the chunk permanently.
    Refused,
    /// The limit of retries was reached, or the deadline of the shutdown.
    Undelivered,
    /// The record could not be taken where it was emitted: in a suppressed thread, or in code that
    /// interrupted its thread during `emit`, such as a signal handler or an allocator with probes.
    Reentrant,
}

impl LossReason {
    /// Every reason, by number.
    pub const ALL: [Self; 9] = [
        Self::QueueFullNewest,
        Self::QueueFullOldest,
        Self::BlockTimeout,
        Self::Shutdown,
        Self::TooLarge,
        Self::NotEncodable,
        Self::Refused,
        Self::Undelivered,
        Self::Reentrant,
    ];

    /// The reason's number in the container.
    pub const fn code(self) -> u8 {
        self.code_and_name().0
    }

    /// The reason's name in tables and JSON.
    pub const fn name(self) -> &'static str {
        self.code_and_name().1
    }

    const fn code_and_name(self) -> (u8, &'static str) {
        match self {
            Self::QueueFullNewest => (0x01, "queue_full_newest"),
            Self::QueueFullOldest => (0x02, "queue_full_oldest"),
            Self::BlockTimeout => (0x03, "block_timeout"),
            Self::Shutdown => (0x04, "shutdown"),
            Self::TooLarge => (0x05, "too_large"),
            Self::NotEncodable => (0x06, "not_encodable"),
            Self::Refused => (0x07, "refused"),
            Self::Undelivered => (0x08, "undelivered"),
            Self::Reentrant => (0x09, "reentrant"),
        }
    }

    /// The reason with this number.
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.code() == code)
    }
}

impl fmt::Display for LossReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Counts of lost records by reason.
///
/// Reasons that this version does not know keep their number, so that a relay forwards them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Losses {
    counts: std::collections::BTreeMap<u8, u64>,
}

impl Losses {
    /// Adds lost records.
    pub fn add(&mut self, reason: LossReason, records: u64) {
        self.add_code(reason.code(), records);
    }

    /// Adds lost records by the reason's number.
    pub fn add_code(&mut self, code: u8, records: u64) {
        if records > 0 {
            let count = self.counts.entry(code).or_default();
            *count = count.saturating_add(records);
        }
    }

    /// Returns the number of records lost for this reason.
    pub fn get(&self, reason: LossReason) -> u64 {
        self.counts.get(&reason.code()).copied().unwrap_or(0)
    }

    /// Returns the number of lost records.
    pub fn total(&self) -> u64 {
        self.counts
            .values()
            .fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// Whether nothing was lost.
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// Returns numbers and counts, in order of the numbers, without counts of 0.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (u8, u64)> {
        self.counts.iter().map(|(code, count)| (*code, *count))
    }
}

/// Consecutive chunks of a lane that were given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LostChunks {
    /// The first one's sequence number.
    pub first_sequence: u64,
    /// The number of chunks, at least one.
    pub chunks: u64,
}
