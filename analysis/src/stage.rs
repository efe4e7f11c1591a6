//! A filter or a sink.

use std::time::Instant;

use crate::error::AnalysisError;
use crate::parcel::Parcel;

/// A filter or a sink: takes parcels, and passes some of them on to a next stage.
///
/// # What an implementer promises
///
/// 1. It drops a parcel when it is done with it, not before: the chunk is settled when the last
///    clone is gone. A stage that only collects figures drops at once; one that buffers its output
///    flushes before it lets go, or keeps the parcel until it has flushed.
/// 2. It names the stage that it feeds ([`next`](Self::next)), or asks several stages itself.
/// 3. It holds a bounded amount of memory, however many records pass.
///
/// # Why this shape
///
/// Push with ownership needs no scheduler, no channel between stages that do not want one
/// ([`crate::Pipe`] is one that does), and makes "settle after processing" a matter of ownership.
pub trait Stage: Send {
    /// The stage's name in messages.
    fn name(&self) -> &'static str;

    /// The stage that this one feeds, if it feeds one. By default the other calls ask that stage.
    fn next(&mut self) -> Option<&mut dyn Stage> {
        None
    }

    /// Waits until the stage can take a parcel without waiting for others, `by` at most; returns
    /// whether it can. By default it can when the next stage can.
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

    /// Makes the accepted records durable or visible: flushes buffers. Called when the stages hold as
    /// many chunks as may be in work, and before the end.
    /// Stages on a thread of their own ([`crate::Pipe`]) may do so later; [`finish`](Self::finish)
    /// waits for them.
    ///
    /// # Errors
    ///
    /// As [`Stage::accept`].
    fn flush(&mut self) -> Result<(), AnalysisError> {
        self.next().map_or(Ok(()), Stage::flush)
    }

    /// Called when nothing came for a while. Returns whether the stage still holds something back:
    /// then this is called again, some twenty times a second, until something comes.
    ///
    /// By default everything is flushed. A stage that writes files may wait, so that they are not
    /// tiny. Until it flushes, a sender whose window is full waits.
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

    /// Ends: nothing will come any more.
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
