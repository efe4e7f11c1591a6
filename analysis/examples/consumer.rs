//! A consumer that settles after processing.
//!
//! It reads a folder of chunks as the consumer `audit`, prints every order above 100 euros, and
//! counts records by type. Unfinished chunks come again at the next start.
//!
//! ```sh
//! cargo run -p baler-analysis --example consumer [FOLDER]
//! ```
//!
//! Without a folder it fills its own one first.

#![expect(clippy::print_stdout, reason = "an example talks to people")]

use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use baler_analysis::filters::{Count, Tee};
use baler_analysis::quarantine::QuarantineFolder;
use baler_analysis::{AnalysisError, Parcel, Source, Stage, Stop};
use baler_common::container::{ChunkHeader, ChunkSerializer, Compression, NativeSerializer};
use baler_common::record::{BatchBuilder, Record};
use baler_common::transport::{
    Chunk, ChunkIdentity, ChunkMeta, ChunkWriter, ContainerKind, Epoch, ProducerId,
};
use baler_connector_file::{
    ConsumerName, FileReader, FileReaderConfig, FileWriter, FileWriterConfig,
};

/// The producer's record. A consumer needs only the fields that it uses.
#[derive(Debug, Record)]
#[record(name = "shop.Order")]
struct Order {
    #[record(timestamp)]
    placed_unix_ns: i64,
    customer: String,
    cents: u64,
    coupon: Option<String>,
}

/// The fields that this consumer needs. They are matched by name; other fields are ignored.
#[derive(Debug, Record)]
#[record(name = "shop.Order")]
struct Bill {
    customer: String,
    cents: u64,
}

/// Prints large orders. When `accept` returns, the parcel is dropped. When its last clone is
/// dropped, the chunk is settled; an error gives it back.
struct PrintLargeOrders;

impl Stage for PrintLargeOrders {
    fn name(&self) -> &'static str {
        "large orders"
    }

    fn accept(&mut self, parcel: Parcel) -> Result<(), AnalysisError> {
        // Only the records that filters before this stage have left.
        for bill in parcel.read::<Bill>() {
            let bill =
                bill.map_err(|error| AnalysisError::stage("large orders", error.to_string()))?;
            if bill.cents > 10_000 {
                println!(
                    "{} pays {}.{:02} euros",
                    bill.customer,
                    bill.cents / 100,
                    bill.cents % 100
                );
            }
        }
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let scratch = tempfile::tempdir()?;
    let folder = match std::env::args_os().nth(1) {
        Some(folder) => PathBuf::from(folder),
        None => {
            fill(scratch.path())?;
            scratch.path().to_owned()
        }
    };
    let mut config = FileReaderConfig::new(&folder);
    config.consumer = Some("audit".parse::<ConsumerName>()?);
    let reader = FileReader::open(config)?;
    let mut source = Source::new(Box::new(reader))
        .with_quarantine(QuarantineFolder::new(folder.join("quarantine")));
    let (count, counts) = Count::new();
    let mut stages = Tee::new().branch(PrintLargeOrders).branch(count);
    source.run(&mut stages, Stop::default(), |_| true)?;
    let report = source.close(Instant::now() + Duration::from_secs(5))?;
    for kind in counts.by_type() {
        println!("{} records of type {}", kind.records, kind.type_name);
    }
    println!(
        "{} chunks settled, {} quarantined",
        report.acknowledged, report.quarantined
    );
    Ok(())
}

/// Three chunks of orders, written by hand. Applications leave this to `baler-monitoring`.
fn fill(folder: &Path) -> Result<(), Box<dyn Error>> {
    let by = Instant::now() + Duration::from_secs(5);
    let mut writer = FileWriter::new(FileWriterConfig::new(folder));
    writer.reopen(by)?;
    let mut serializer = NativeSerializer::new(Compression::None)?;
    for sequence in 0..3_u32 {
        let mut orders = BatchBuilder::new();
        for number in 0..100_u32 {
            orders.push(&Order {
                placed_unix_ns: 1_700_000_000_000_000_000 + i64::from(sequence * 100 + number),
                customer: format!("customer {}", number % 7),
                cents: u64::from(number) * 103,
                coupon: (number % 10 == 0).then(|| "WELCOME".to_owned()),
            })?;
        }
        let identity = ChunkIdentity {
            producer: ProducerId::new(1),
            epoch: Epoch {
                start_unix_ns: 1_700_000_000_000_000_000,
                random: 0,
            },
            lane: 0,
            sequence: sequence.into(),
        };
        let mut bytes = Vec::new();
        serializer.serialize(orders.batch(), &ChunkHeader::new(identity), &mut bytes)?;
        let meta = ChunkMeta {
            container: ContainerKind::Native,
            records: 100,
            identity,
        };
        let chunk = Chunk {
            ticket: sequence.into(),
            meta,
            bytes: bytes.into(),
        };
        writer
            .offer(chunk)
            .map_err(|rejected| format!("{:?}", rejected.reason))?;
    }
    let report = Box::new(writer).close(by);
    if report.unconfirmed.is_empty() {
        Ok(())
    } else {
        Err("the disk is too slow".into())
    }
}
