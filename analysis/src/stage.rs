//! A filter or a sink.

use std::time::Instant;

use crate::error::AnalysisError;
use crate::parcel::Parcel;

/// A filter or a sink: takes parcels and passes on what it wants, to whom it wants.
///
/// # What an implementer promises
///
/// 1. It drops a parcel when it is done with it, not before: the chunk is settled when the last
///    clone is gone. A stage that only collects figures drops at once; one that buffers its output
///    flushes before it lets go, or keeps the parcel until it has flushed.
/// 2. It calls [`finish`](Self::finish) of the stages behind it.
/// 3. It holds a bounded amount of memory, however many records pass.
///
/// # Why this shape
///
/// Push with ownership needs no scheduler, no channel between stages that do not want one
/// ([`crate::Pipe`] is one that does), and makes "settle after processing" a matter of ownership.
pub trait Stage: Send {
    /// The stage's name in messages.
    fn name(&self) -> &'static str;

    /// Waits until the stage can take a parcel without waiting for others, `by` at most; returns
    /// whether it can. By default it always can.
    ///
    /// # Errors
    ///
    /// As [`Stage::accept`].
    fn ready(&mut self, _by: Instant) -> Result<bool, AnalysisError> {
        Ok(true)
    }

    /// Processes a parcel.
    ///
    /// # Errors
    ///
    /// The pipeline ends with the first error; the parcel is given back to the medium.
    fn accept(&mut self, parcel: Parcel) -> Result<(), AnalysisError>;

    /// Makes what was accepted so far durable or visible: flushes buffers. Called when as much is
    /// held as may be in work, and before the end.
    /// Stages on a thread of their own ([`crate::Pipe`]) may do so later; [`finish`](Self::finish)
    /// waits for them.
    ///
    /// # Errors
    ///
    /// As [`Stage::accept`].
    fn flush(&mut self) -> Result<(), AnalysisError> {
        Ok(())
    }

    /// Nothing came for a while. Returns whether something is held back still: then this is called
    /// again, some twenty times a second, until something comes.
    ///
    /// By default everything is flushed. Whoever makes files that should not be tiny flushes when
    /// it has been idle for as long as it likes: until then, a sender whose window is full waits.
    ///
    /// # Errors
    ///
    /// As [`Stage::accept`].
    fn idle(&mut self) -> Result<bool, AnalysisError> {
        self.flush().map(|()| false)
    }

    /// Ends: nothing will come any more.
    ///
    /// # Errors
    ///
    /// As [`Stage::accept`].
    fn finish(&mut self) -> Result<(), AnalysisError> {
        self.flush()
    }
}

impl<S: Stage + ?Sized> Stage for Box<S> {
    fn name(&self) -> &'static str {
        (**self).name()
    }

    fn ready(&mut self, by: Instant) -> Result<bool, AnalysisError> {
        (**self).ready(by)
    }

    fn accept(&mut self, parcel: Parcel) -> Result<(), AnalysisError> {
        (**self).accept(parcel)
    }

    fn flush(&mut self) -> Result<(), AnalysisError> {
        (**self).flush()
    }

    fn idle(&mut self) -> Result<bool, AnalysisError> {
        (**self).idle()
    }

    fn finish(&mut self) -> Result<(), AnalysisError> {
        (**self).finish()
    }
}
