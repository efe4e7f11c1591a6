//! The stage that hands records on to another medium.

use baler_analysis::{AnalysisError, Held, Parcel, Stage};

use crate::shipping::Shipper;

/// How many chunks of the source may wait for the confirmation of their records. Below the
/// source's demand, so that the next ones are received meanwhile.
const MAX_HELD: usize = 32;

/// Emits records as they are, and lets go of their chunks when everything emitted is confirmed.
#[derive(Debug)]
pub(super) struct Forward<'a> {
    shipper: &'a Shipper,
    held: Held,
}

impl<'a> Forward<'a> {
    /// Hands on over this shipper.
    pub(super) fn new(shipper: &'a Shipper) -> Self {
        Self {
            shipper,
            held: Held::default(),
        }
    }
}

impl Stage for Forward<'_> {
    fn name(&self) -> &'static str {
        "send"
    }

    fn accept(&mut self, parcel: Parcel) -> Result<(), AnalysisError> {
        for (_, record) in parcel.records() {
            if !self.shipper.controller().emit_as_is(record) && self.shipper.should_stop() {
                return Err(AnalysisError::stage(
                    self.name(),
                    "ended before a chunk was sent",
                ));
            }
        }
        self.held.push(parcel);
        if self.held.len() >= MAX_HELD {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), AnalysisError> {
        if self.held.is_empty() {
            return Ok(());
        }
        self.shipper
            .flush()
            .map_err(|message| AnalysisError::stage("send", message))?;
        self.held.release_all();
        Ok(())
    }
}
