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
use std::time::Duration;

use baler::Record;

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

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let uri = arguments.next().ok_or("usage: typed URI [COUNT]")?;
    let count = arguments.next().map_or(Ok(1_000), |count| count.parse())?;
    let (mut seen, mut total) = (0_u64, Duration::ZERO);
    for batch in baler::consume::<Call>(&uri)? {
        let batch = batch?;
        for call in &batch {
            let took = Duration::from_nanos(call.tout.abs_diff(call.tin));
            if seen < 3 {
                println!("{} took {took:?}", call.operation_signature);
            }
            seen += 1;
            total += took;
        }
        batch.ack()?;
        if seen >= count {
            break;
        }
    }
    println!("{seen} calls took {total:?} together");
    Ok(())
}
