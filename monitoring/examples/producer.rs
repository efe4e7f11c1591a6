//! The smallest producer: a probed function. Its calls go to a folder of chunks.
//!
//! `baler receive --from file:///tmp/baler-producer` shows them.

use std::path::Path;
use std::time::Duration;

use baler_connector_file::{FileWriter, FileWriterConfig};
use baler_monitoring::{Controller, ShutdownReport, StartError, probe};

#[probe]
fn greet(name: &str) -> String {
    format!("Hello, {name}!")
}

/// Greets three people and returns the report.
pub(crate) fn run(folder: &Path) -> Result<ShutdownReport, StartError> {
    let writer = FileWriter::new(FileWriterConfig::new(folder));
    let controller = Controller::builder(Box::new(writer)).start()?;
    controller.install();
    for name in ["Ada", "Edsger", "Grace"] {
        greet(name);
    }
    Ok(controller.shutdown(Duration::from_secs(5)))
}

#[allow(clippy::print_stdout, reason = "an example shows what it did")]
fn main() -> Result<(), StartError> {
    println!("{}", run(&std::env::temp_dir().join("baler-producer"))?);
    Ok(())
}
