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

    /// What the suite can ask of it; cases that need more are skipped, visibly.
    fn support(&self) -> Support;

    /// A writer that was not opened yet.
    fn writer(&mut self) -> Box<dyn ChunkWriter>;

    /// A reader. When one was closed before, this is the receiver, restarted.
    fn reader(&mut self) -> Box<dyn ChunkReader>;

    /// Breaks the connection of every writer, as a cut cable would. Chunks on their way may be
    /// lost or not; `reopen` succeeds afterwards. Needed with [`Support::breaks`].
    fn break_connections(&mut self) {}

    /// Lets the peer hang: nothing is confirmed from now on, and nothing breaks. Needed with
    /// [`Support::stalls`].
    fn stall(&mut self) {}

    /// Ends [`Medium::stall`].
    fn resume(&mut self) {}
}

/// What a medium under test can do beyond its capability.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Support {
    /// How many readers may compete for the chunks; 0 when nothing can be read.
    pub readers: usize,
    /// How many writers may be open at a time.
    pub writers: usize,
    /// Whether [`Medium::break_connections`] works.
    pub breaks: bool,
    /// Whether [`Medium::stall`] works.
    pub stalls: bool,
    /// Whether deliveries come again to a restarted receiver when they were not settled.
    pub redelivers_after_restart: bool,
    /// Whether deliveries come again after [`Verdict::Retry`](baler_common::transport::Verdict).
    pub redelivers_after_retry: bool,
}

impl Support {
    /// Everything, with four readers and four writers.
    pub const ALL: Self = Self {
        readers: 4,
        writers: 4,
        breaks: true,
        stalls: true,
        redelivers_after_restart: true,
        redelivers_after_retry: true,
    };

    /// A medium that discards: one writer, no reader, no faults.
    pub const DISCARDS: Self = Self {
        readers: 0,
        writers: 4,
        breaks: false,
        stalls: false,
        redelivers_after_restart: false,
        redelivers_after_retry: false,
    };
}

/// Says on standard error that a case does not apply.
#[expect(
    clippy::print_stderr,
    reason = "a case that does not run must be visible in the output of the tests"
)]
pub(crate) fn skip(case: &str, medium: &str, why: &str) {
    eprintln!("contract: skipped `{case}` for `{medium}`: {why}");
}
