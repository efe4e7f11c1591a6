//! Keeps chunks that cannot be processed, with their bytes, their origin and the reason.
//!
//! ```text
//! source -> QuarantineThread -> Quarantine: a folder, or any medium with a writer
//! ```
//!
//! - [`Quarantine`] is the seam, [`Poison`] is what it gets.
//! - [`QuarantineFolder`] keeps two files for each chunk, and [`QuarantineReader`] reads them.
//! - [`MediumQuarantine`] keeps them in a topic, a queue or any other medium with a writer, as
//!   records of type [`Quarantined`].
//! - [`QuarantineThread`] keeps a slow disk from delaying valid chunks.
//! - [`Attempts`] finds the chunks that crash their consumer.
//!
//! Any number of processes may use a folder:
//!
//! ```text
//! folder/
//!   PROCESS-NUMBER.chunk              the bytes as they came
//!   PROCESS-NUMBER.json               reason, endpoint, lane, position, bytes; identity, container and records where known
//!   PROCESS-NUMBER.chunk.part, .json.part   being written, or left by a crash
//!   NUMBER.attempts                   chunks that were in work when their consumer died
//! ```

#[expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "only consumers use it: what cannot happen ends the command, and acknowledges nothing"
)]
mod attempts;
mod folder;
#[expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "only consumers use it: what cannot happen ends the command, and acknowledges nothing"
)]
mod medium;
mod poison;
mod record;
mod thread;

pub use attempts::{Attempts, ChunkInWork};
pub use folder::{QuarantineFolder, QuarantineReader};
pub use medium::MediumQuarantine;
pub use poison::{Discard, NotKept, Poison, PutAside, Quarantine};
pub use record::Quarantined;
pub use thread::{PoisonJob, PoisonResult, QuarantineThread};
