//! An application's own record type, beside the types of probes.
//!
//! A consumer that has never seen the type prints it with its field names, because a chunk carries
//! the schemas of its types.

use std::time::Duration;

use baler_common::record::Record;
use baler_common::transport::ChunkWriter;
use baler_connector_null::{NullConfig, NullWriter};
use baler_monitoring::{Controller, ShutdownReport, StartError, emit};

/// A sensor's measurement.
#[derive(Debug, Clone, PartialEq, Record)]
#[record(name = "plant.Measurement")]
pub(crate) struct Measurement {
    /// Its time, in nanoseconds since the Unix epoch; also the timestamp of the record.
    #[record(timestamp)]
    pub(crate) taken_at: i64,
    pub(crate) sensor: String,
    pub(crate) celsius: f64,
    /// Some sensors do not report their error.
    pub(crate) error: Option<f32>,
    pub(crate) quality: Quality,
}

/// The reliability of a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Record)]
pub(crate) enum Quality {
    Good,
    Doubtful,
}

/// Returns the measurements of a short run.
pub(crate) fn measurements() -> Vec<Measurement> {
    let measurement = |taken_at, sensor: &str, celsius, error| Measurement {
        taken_at,
        sensor: sensor.into(),
        celsius,
        error,
        quality: if celsius < 100.0 {
            Quality::Good
        } else {
            Quality::Doubtful
        },
    };
    vec![
        measurement(1_700_000_000_000_000_000, "boiler", 81.5, Some(0.5)),
        measurement(1_700_000_000_500_000_000, "boiler", 120.25, None),
        measurement(1_700_000_001_000_000_000, "pump", 40.0, None),
    ]
}

/// Ships the measurements and returns the report.
pub(crate) fn run(writer: Box<dyn ChunkWriter>) -> Result<ShutdownReport, StartError> {
    let controller = Controller::builder(writer).application("plant").start()?;
    controller.install();
    for measurement in measurements() {
        // Returns `false` if the record was refused, for example because a queue is full; that is
        // counted.
        emit(&measurement);
    }
    Ok(controller.shutdown(Duration::from_secs(5)))
}

#[allow(clippy::print_stdout, reason = "an example shows what it did")]
fn main() -> Result<(), StartError> {
    let writer = NullWriter::new(NullConfig::default());
    println!("{}", run(Box::new(writer))?);
    Ok(())
}
