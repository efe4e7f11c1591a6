//! The analysis of traces as a stage.

use std::fmt;
use std::io::Write;
use std::sync::{Arc, Mutex};

use baler_common::mutex::lock;

use super::TraceAnalysis;
use super::assemble::{ClosedTrace, TraceSettings};
use super::operations::Operations;
use super::saved::SavedTraces;
use crate::error::AnalysisError;
use crate::parcel::Parcel;
use crate::stage::Stage;

/// A stage that feeds a [`TraceAnalysis`]. Clones share the analysis.
#[derive(Debug, Clone, Default)]
pub struct TraceStage(Arc<Mutex<StageState>>);

#[derive(Default)]
struct StageState {
    analysis: TraceAnalysis,
    /// The output for the list of closed traces, and its name.
    list: Option<(Box<dyn Write + Send>, Box<str>)>,
    each: Option<Box<Each>>,
}

/// Receives closed traces.
type Each = dyn FnMut(&ClosedTrace, &Operations) -> Result<(), AnalysisError> + Send;

impl TraceStage {
    /// Creates a stage with an analysis of its own.
    pub fn new(settings: TraceSettings) -> Self {
        Self(Arc::new(Mutex::new(StageState {
            analysis: TraceAnalysis::new(settings),
            ..StageState::default()
        })))
    }

    /// Writes every closed trace as a line of JSON to an output of this name.
    #[must_use]
    pub fn with_list(self, output: impl Write + Send + 'static, name: impl Into<Box<str>>) -> Self {
        lock(&self.0).list = Some((Box::new(output), name.into()));
        self
    }

    /// Passes every closed trace to `each`. Its error ends the stage.
    #[must_use]
    pub fn with_each(
        self,
        each: impl FnMut(&ClosedTrace, &Operations) -> Result<(), AnalysisError> + Send + 'static,
    ) -> Self {
        lock(&self.0).each = Some(Box::new(each));
        self
    }

    /// Adds saved results: see [`TraceAnalysis::add_saved`].
    pub fn add_saved(&self, parts: Vec<SavedTraces>) {
        lock(&self.0).analysis.add_saved(parts);
    }

    /// Reads the analysis.
    pub fn read<R>(&self, read: impl FnOnce(&TraceAnalysis) -> R) -> R {
        read(&lock(&self.0).analysis)
    }
}

impl Stage for TraceStage {
    fn name(&self) -> &'static str {
        "traces"
    }

    fn accept(&mut self, parcel: Parcel) -> Result<(), AnalysisError> {
        lock(&self.0).run(|analysis, list| analysis.accept(&parcel, list))
    }

    fn finish(&mut self) -> Result<(), AnalysisError> {
        let mut state = lock(&self.0);
        state.run(|analysis, list| analysis.finish(list))?;
        match &mut state.list {
            Some((output, name)) => output
                .flush()
                .map_err(|error| AnalysisError::output(name.clone(), error)),
            None => Ok(()),
        }
    }
}

impl StageState {
    /// Runs one step of the analysis, and lists and passes on the traces that it closes.
    fn run(
        &mut self,
        step: impl FnOnce(&mut TraceAnalysis, &mut dyn FnMut(&ClosedTrace, &Operations)),
    ) -> Result<(), AnalysisError> {
        let mut written = Ok(());
        let (list, each) = (&mut self.list, &mut self.each);
        step(&mut self.analysis, &mut |closed, operations| {
            if let (Ok(()), Some((output, name))) = (&written, list.as_mut()) {
                let line = writeln!(output, "{}", closed.document(operations));
                written = line.map_err(|error| AnalysisError::output(name.clone(), error));
            }
            if let (Ok(()), Some(each)) = (&written, each.as_mut()) {
                written = each(closed, operations);
            }
        });
        written
    }
}

impl fmt::Debug for StageState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StageState")
            .field("analysis", &self.analysis)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
