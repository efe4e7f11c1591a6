//! The calls of valid traces as Kieker's executions: closed traces -> controller -> writer.

use baler_analysis::AnalysisError;
use baler_analysis::traces::TraceStage;
use baler_common::record::Record as _;
use baler_connector_kieker::types::OperationExecutionRecord;
use serde_json::Value;

use crate::args::{AnalyzeArgs, ObserveArgs, ShippingArgs};
use crate::endpoint;
use crate::exit::{Code, Failure};
use crate::observe::Observation;
use crate::shipping::Shipper;
use crate::shutdown::Shutdown;

/// Sends the calls of traces to the medium of `--executions`.
pub(super) struct Executions {
    shipper: Shipper,
    observation: Observation,
}

impl Executions {
    /// Starts to send to this medium.
    ///
    /// # Errors
    ///
    /// The URI or a setting is wrong.
    pub(super) fn start(
        to: &str,
        args: &AnalyzeArgs,
        quiet: bool,
        shutdown: &Shutdown,
    ) -> Result<Self, Failure> {
        let writer = endpoint::writer(to)?;
        let mut shipping = ShippingArgs::without_flags()?;
        if let Some(limit) = args.give_up.limit(args.idle_timeout) {
            shipping.give_up = limit;
        }
        let observation = Observation::start(&ObserveArgs::default(), "analyze", shutdown, quiet)?;
        // Kieker's readers take the unit of times from the metadata record.
        let shipper = Shipper::start(&shipping, writer, true, &observation)?;
        Ok(Self {
            shipper,
            observation,
        })
    }

    /// Returns the stage, which now also sends the calls of its valid traces.
    pub(super) fn take_from(&self, traces: TraceStage) -> TraceStage {
        let controller = self.shipper.controller.clone();
        traces.with_each(move |closed, operations| {
            for call in closed.executions(operations) {
                let schema = OperationExecutionRecord::schema();
                let is_accepted =
                    controller.emit_row(schema, call.tout, |row| call.write_fields(row));
                // The report has records that are not accepted, except after the controller's end.
                if !is_accepted && !controller.is_enabled() {
                    let message = "ended before all executions were sent";
                    return Err(AnalysisError::stage("executions", message));
                }
            }
            Ok(())
        })
    }

    /// Delivers the remaining records. Returns the figures, and the exit code.
    ///
    /// # Errors
    ///
    /// The medium was given up, or the figures do not add up.
    pub(super) fn finish(self) -> Result<(Value, Code), Failure> {
        let report = self.shipper.finish();
        self.observation.finish()?;
        let code = report.conclude()?;
        Ok((report.document, code))
    }
}
