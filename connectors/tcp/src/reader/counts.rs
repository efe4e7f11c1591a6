//! What happened at a reader, in numbers.

use std::sync::atomic::{AtomicU64, Ordering};

/// What happened at a reader so far.
#[derive(Debug, Default)]
pub struct TcpReaderCounts {
    pub(super) connections: AtomicU64,
    pub(super) connections_lost: AtomicU64,
    pub(super) connections_refused: AtomicU64,
    pub(super) connections_turned_away: AtomicU64,
    pub(super) chunks: AtomicU64,
    pub(super) bytes: AtomicU64,
    pub(super) damaged: AtomicU64,
    pub(super) damaged_untold: AtomicU64,
}

impl TcpReaderCounts {
    /// Senders that said hello.
    pub fn connections(&self) -> u64 {
        self.connections.load(Ordering::Relaxed)
    }

    /// Connections that ended without a farewell: cut, silent, or closed for what they sent.
    pub fn connections_lost(&self) -> u64 {
        self.connections_lost.load(Ordering::Relaxed)
    }

    /// Connections that did not prove to have the token or a certificate, or that sent chunks of the
    /// producer of another connection. Each is told as damage that names the peer.
    pub fn connections_refused(&self) -> u64 {
        self.connections_refused.load(Ordering::Relaxed)
    }

    /// Connections that were closed at once because there were too many.
    pub fn connections_turned_away(&self) -> u64 {
        self.connections_turned_away.load(Ordering::Relaxed)
    }

    /// Chunks that came, repetitions included.
    pub fn chunks(&self) -> u64 {
        self.chunks.load(Ordering::Relaxed)
    }

    /// Bytes of those chunks.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Connections that sent what cannot be a hello or a frame.
    pub fn damaged(&self) -> u64 {
        self.damaged.load(Ordering::Relaxed)
    }

    /// Those of them that were not told to the owner, because too many came at a time.
    pub fn damaged_untold(&self) -> u64 {
        self.damaged_untold.load(Ordering::Relaxed)
    }
}

/// Adds to a counter.
pub(super) fn add(counter: &AtomicU64, value: u64) {
    counter.fetch_add(value, Ordering::Relaxed);
}
