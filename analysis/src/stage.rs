//! A filter or a sink.

use std::time::Instant;

use crate::error::AnalysisError;
use crate::parcel::Parcel;

/// A filter or a sink: takes parcels, and passes some of them on to a next stage.
///
/// # Requirements
///
/// 1. It drops a parcel when it has finished with it, not before: the chunk is settled when the
///    last clone is dropped. A stage that only collects figures drops it at once. A stage that
///    buffers its output keeps the parcel until it has flushed.
/// 2. It names the stage that it feeds ([`next`](Self::next)), or calls several stages itself.
/// 3. It holds a limited amount of memory, however many records pass.
///
/// # Design
///
/// Pushing with ownership needs no scheduler, and no channel between stages that do not want one
/// ([`crate::Pipe`] is a stage with a channel). It makes "settle after processing" a matter of
/// ownership.
pub trait Stage: Send {
    /// The stage's name in messages.
    fn name(&self) -> &'static str;

    /// Returns the stage that this one feeds, if any. By default the other calls go to that stage.
    fn next(&mut self) -> Option<&mut dyn Stage> {
        None
    }

    /// Waits until the stage can take a parcel without waiting for others, until `by` at most.
    /// Returns whether it can. By default it can when the next stage can.
    ///
    /// # Errors
    ///
    /// As [`Stage::accept`].
    fn ready(&mut self, by: Instant) -> Result<bool, AnalysisError> {
        self.next().map_or(Ok(true), |next| next.ready(by))
    }

    /// Processes a parcel.
    ///
    /// # Errors
    ///
    /// The pipeline ends with the first error; the parcel is given back to the medium.
    fn accept(&mut self, parcel: Parcel) -> Result<(), AnalysisError>;

    /// Makes the accepted records durable or visible: flushes buffers. Called when the stages hold
    /// the most chunks that may be in work, and before the end. Stages on a thread of their own
    /// ([`crate::Pipe`]) may do this later; [`finish`](Self::finish) waits for them.
    ///
    /// # Errors
    ///
    /// As [`Stage::accept`].
    fn flush(&mut self) -> Result<(), AnalysisError> {
        self.next().map_or(Ok(()), Stage::flush)
    }

    /// Called when nothing has arrived for a while. Returns whether the stage still holds data
    /// back. Then it is called again, about twenty times a second, until something arrives.
    ///
    /// By default everything is flushed. A stage that writes files may wait, so that its files are
    /// not tiny. Until it flushes, a sender with a full window waits.
    ///
    /// # Errors
    ///
    /// As [`Stage::accept`].
    fn idle(&mut self) -> Result<bool, AnalysisError> {
        if let Some(next) = self.next() {
            return next.idle();
        }
        self.flush().map(|()| false)
    }

    /// Ends: nothing more will arrive.
    ///
    /// # Errors
    ///
    /// As [`Stage::accept`].
    fn finish(&mut self) -> Result<(), AnalysisError> {
        if let Some(next) = self.next() {
            return next.finish();
        }
        self.flush()
    }
}

impl<S: Stage + ?Sized> Stage for Box<S> {
    fn name(&self) -> &'static str {
        (**self).name()
    }

    fn next(&mut self) -> Option<&mut dyn Stage> {
        (**self).next()
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
