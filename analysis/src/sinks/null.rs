//! Discards.

use crate::error::AnalysisError;
use crate::parcel::Parcel;
use crate::stage::Stage;

/// Takes everything and keeps nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Null;

impl Stage for Null {
    fn name(&self) -> &'static str {
        "null"
    }

    fn accept(&mut self, _parcel: Parcel) -> Result<(), AnalysisError> {
        Ok(())
    }
}
