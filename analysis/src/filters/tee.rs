//! One stream to several stages.

use std::time::Instant;

use crate::error::AnalysisError;
use crate::parcel::Parcel;
use crate::stage::Stage;

/// Hands every parcel to each of several stages, in order.
#[derive(Default)]
pub struct Tee {
    branches: Vec<Box<dyn Stage>>,
}

impl std::fmt::Debug for Tee {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list()
            .entries(self.branches.iter().map(|branch| branch.name()))
            .finish()
    }
}

impl Tee {
    /// A tee without branches: it discards.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a branch.
    #[must_use]
    pub fn branch(mut self, stage: impl Stage + 'static) -> Self {
        self.branches.push(Box::new(stage));
        self
    }
}

impl Stage for Tee {
    fn name(&self) -> &'static str {
        "tee"
    }

    fn ready(&mut self, by: Instant) -> Result<bool, AnalysisError> {
        for branch in &mut self.branches {
            if !branch.ready(by)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn accept(&mut self, parcel: Parcel) -> Result<(), AnalysisError> {
        self.branches
            .iter_mut()
            .try_for_each(|branch| branch.accept(parcel.clone()))
    }

    fn flush(&mut self) -> Result<(), AnalysisError> {
        first_error(self.branches.iter_mut().map(|branch| branch.flush()))
    }

    fn idle(&mut self) -> Result<bool, AnalysisError> {
        let mut held = false;
        let idle = |branch: &mut Box<dyn Stage>| branch.idle().map(|more| held |= more);
        first_error(self.branches.iter_mut().map(idle))?;
        Ok(held)
    }

    fn finish(&mut self) -> Result<(), AnalysisError> {
        first_error(self.branches.iter_mut().map(|branch| branch.finish()))
    }
}

/// Every branch is asked, even when an earlier one failed.
fn first_error(
    results: impl Iterator<Item = Result<(), AnalysisError>>,
) -> Result<(), AnalysisError> {
    let mut first = Ok(());
    for result in results {
        first = first.and(result);
    }
    first
}
