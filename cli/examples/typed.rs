//! Reads records from RabbitMQ or Kafka as values of a Rust type.
//!
//! ```sh
//! cargo run --release -p baler-cli --example typed -- URI [COUNT]
//! ```
//!
//! It takes COUNT calls (1,000) that `baler generate` or probes sent, prints the first ones, and
//! acknowledges the chunks.

#![expect(clippy::print_stdout, reason = "an example talks to people")]

use std::error::Error;
use std::time::{Duration, Instant};

use baler_analysis::{AnalysisError, Parcel, Source, Stage, Stop};
use baler_common::record::Record;
use baler_common::transport::ChunkReader;
use baler_common::transport::uri::Uri;
use baler_connector_amqp::{AmqpConfig, AmqpReader};
use baler_connector_kafka::{KafkaConfig, KafkaReader};

/// The fields of a call that this program needs; a chunk's records are matched by type and name.
#[derive(Debug, Record)]
#[record(
    name = "kieker.common.record.controlflow.OperationExecutionRecord",
    rename_all = "camelCase"
)]
struct Call {
    operation_signature: String,
    #[record(unix_nanos)]
    tin: i64,
    #[record(unix_nanos)]
    tout: i64,
}

/// Prints the first calls, and adds up the time of all.
#[derive(Default)]
struct Calls {
    seen: u64,
    total: Duration,
}

impl Stage for Calls {
    fn name(&self) -> &'static str {
        "calls"
    }

    fn accept(&mut self, parcel: Parcel) -> Result<(), AnalysisError> {
        for call in parcel.chunk().batch.read::<Call>() {
            let call = call.map_err(|error| AnalysisError::stage("calls", error.to_string()))?;
            let took = Duration::from_nanos(call.tout.saturating_sub(call.tin).unsigned_abs());
            if self.seen < 3 {
                println!("{} took {took:?}", call.operation_signature);
            }
            self.seen += 1;
            self.total += took;
        }
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let uri = Uri::parse(&arguments.next().ok_or("usage: typed URI [COUNT]")?)?;
    let count = arguments.next().map_or(Ok(1_000), |count| count.parse())?;
    let reader: Box<dyn ChunkReader> = match uri.scheme() {
        "amqp" | "amqps" => Box::new(AmqpReader::new(AmqpConfig::from_uri(uri)?)?),
        "kafka" => Box::new(KafkaReader::open(KafkaConfig::from_uri(uri)?)?),
        scheme => return Err(format!("{scheme}: write an amqp: or kafka: URI").into()),
    };
    let mut source = Source::new(reader);
    let mut calls = Calls::default();
    source.run(&mut calls, Stop::default(), |report| report.records < count)?;
    let report = source.close(Instant::now() + Duration::from_secs(10))?;
    println!(
        "{} calls took {:?} together; {} chunks acknowledged",
        calls.seen, calls.total, report.acknowledged
    );
    Ok(())
}
