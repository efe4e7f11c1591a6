//! What happened at a writer.

/// What happened at a writer since it was made, over all its connections.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct AmqpWriterCounts {
    /// Connections that were made, and everything declared on them.
    pub connections: u64,
    /// Chunks that were published, repetitions included.
    pub published: u64,
    /// Chunks that the broker confirmed.
    pub confirmed: u64,
    /// Chunks that the broker refused (`basic.nack`): to be offered again.
    pub nacked: u64,
    /// Chunks that no queue was bound for (`basic.return`).
    pub returned: u64,
    /// How often the broker blocked the connection, because it is short of memory or disk.
    pub blocked: u64,
    /// Whether it is blocked now: the window counts as full.
    pub is_blocked: bool,
}
