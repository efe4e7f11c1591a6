//! A medium under test: what a connector tells the contract suite of itself.

use baler_common::transport::{ChunkReader, ChunkWriter};

/// A medium under test.
///
/// Each case makes one with [`Medium::fresh`]; media of other cases must not be seen in it.
/// Choose small limits (chunks of some kilobytes, a window of 8 to 64 chunks), so that the cases
/// that reach them are quick.
pub trait Medium: Sized {
    /// A new, empty medium with nobody connected.
    fn fresh() -> Self;

    /// Whether what is written can be read.
    fn is_readable(&self) -> bool {
        true
    }

    /// A writer that was not opened yet.
    fn writer(&mut self) -> Box<dyn ChunkWriter>;

    /// A reader. When one was closed before, this is the receiver, restarted.
    fn reader(&mut self) -> Box<dyn ChunkReader>;

    /// Breaks the connection of every writer, as a cut cable would. Chunks on their way may be
    /// lost or not; `reopen` succeeds afterwards. Needed by the group `breaks`.
    fn break_connections(&mut self) {}

    /// Lets the peer hang: nothing is confirmed from now on, and nothing breaks. Needed by
    /// the group `stalls`.
    fn stall(&mut self) {}

    /// Ends [`Medium::stall`].
    fn resume(&mut self) {}
}
