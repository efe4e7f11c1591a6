//! A record type of the application's own, beside those of probes.
//!
//! A consumer that has never seen the type prints it with its field names, for a chunk carries the
//! schemas of the types in it.

use std::time::Duration;

use baler_common::record::Record;
use baler_common::transport::ChunkWriter;
use baler_connector_null::{NullConfig, NullWriter};
use baler_monitoring::{Controller, ShutdownReport, StartError, emit};

/// What a sensor measured.
#[derive(Debug, Clone, PartialEq, Record)]
#[record(name = "plant.Measurement")]
pub(crate) struct Measurement {
    /// When, in nanoseconds since the Unix epoch; also the time of the record.
    #[record(timestamp)]
    pub(crate) taken_at: i64,
    pub(crate) sensor: String,
    pub(crate) celsius: f64,
    /// Not all sensors say how sure they are.
    pub(crate) error: Option<f32>,
    pub(crate) quality: Quality,
}

/// How far a measurement can be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Record)]
pub(crate) enum Quality {
    Good,
    Doubtful,
}

/// The measurements of a short run.
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

/// Ships the measurements and says what became of them.
pub(crate) fn run(writer: Box<dyn ChunkWriter>) -> Result<ShutdownReport, StartError> {
    let controller = Controller::builder(writer).application("plant").start()?;
    controller.install();
    for measurement in measurements() {
        // False when it was not taken, for instance because a queue is full; that is counted.
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
