//! What happens to a record when there is no room for it.

use std::time::Duration;

use baler_common::container::LossReason;

/// What happens to a record when there is no room for it.
///
/// Kieker calls it `RecordQueueInsertBehavior`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Overflow {
    /// The thread waits until there is room. It never waits for a collector that is gone or
    /// shutting down: the record is then dropped.
    Block,
    /// The thread waits so long at most, then the record is dropped.
    BlockTimeout(Duration),
    /// The new record is dropped. The default: monitoring must not stall what it monitors, and
    /// nothing costs the thread less.
    #[default]
    DropNewest,
    /// The oldest block of records is dropped, the thread's own if it has one. Blocks that threads
    /// are still filling are spared; where there is no other, the new record is dropped.
    DropOldest,
}

impl Overflow {
    /// Why a record is lost when this policy finds no room.
    pub(crate) const fn loss(self) -> LossReason {
        match self {
            // Without a limit, a thread stops waiting only because nobody will make room.
            Self::Block => LossReason::Shutdown,
            Self::BlockTimeout(_) => LossReason::BlockTimeout,
            Self::DropNewest => LossReason::QueueFullNewest,
            Self::DropOldest => LossReason::QueueFullOldest,
        }
    }
}
