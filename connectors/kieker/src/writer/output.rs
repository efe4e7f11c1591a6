//! The seam between the thread of a writer and its medium.

use std::path::Path;
use std::time::Instant;

use baler_common::container::EncodeError;
use baler_common::record::RecordBatch;
use baler_common::transport::{Capability, Failure};
use tokio::sync::watch;

/// A place that takes records: its settings.
pub trait Target: Clone + Send + 'static {
    /// An open connection or folder.
    type Output: Output;

    /// What the medium can do.
    fn capability(&self) -> Capability;

    /// The place in errors, without credentials.
    fn endpoint(&self) -> String;

    /// The file or folder with record types beside Kieker's own.
    fn schema(&self) -> Option<&Path>;

    /// Opens it, `by` at most. Waits end when `interrupt` becomes true.
    ///
    /// # Errors
    ///
    /// It cannot be opened.
    fn open(&self, interrupt: watch::Receiver<bool>, by: Instant) -> Result<Self::Output, Failure>;
}

/// An open connection or folder. Its calls block.
pub trait Output {
    /// Writes the records of a chunk; with `Ok` the operating system has all of them.
    ///
    /// # Errors
    ///
    /// [`WriteError`]. Nothing of a refused batch was written.
    fn write(&mut self, batch: &RecordBatch) -> Result<(), WriteError>;

    /// Ends it after the last chunk.
    ///
    /// # Errors
    ///
    /// What was written may not have got there.
    fn finish(self) -> Result<(), Failure>;
}

/// Why a chunk was not written.
#[derive(Debug)]
pub enum WriteError {
    /// The medium is gone.
    Broken(Failure),
    /// The medium never takes this chunk.
    Refused(Box<str>),
}

impl From<EncodeError> for WriteError {
    fn from(error: EncodeError) -> Self {
        Self::Refused(error.to_string().into())
    }
}
