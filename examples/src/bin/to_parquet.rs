//! Writes all records of a queue or topic into Parquet files.
//!
//! `to_parquet URI FOLDER [IDLE_SECONDS]`. If you start it several times with the same queue, or
//! the same `group.id` of Kafka, the processes share the chunks. A chunk is acknowledged when its
//! records are on disk, so a killed process loses nothing. It ends by a signal, or after this number
//! of seconds without a chunk.

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use baler::ConsumerConfig;
use baler::analysis::Stop;
use baler::analysis::filters::Counts;
use baler::arrow::{ParquetFolder, ParquetSettings};
use signal_hook::consts::{SIGINT, SIGTERM};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let usage = "usage: to_parquet URI FOLDER [IDLE_SECONDS]";
    let (uri, folder) = arguments.next().zip(arguments.next()).ok_or(usage)?;
    let is_stopped = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&is_stopped))?;
    }
    let mut settings = ParquetSettings::default();
    // Each record keeps its identity, to find duplicates.
    settings.identity = true;
    let mut config: ConsumerConfig = uri.parse()?;
    if let Some(seconds) = arguments.next() {
        config.idle_timeout = Some(Duration::from_secs(seconds.parse()?));
    }
    // All chunks of an open file are in work until it ends.
    config.demand = settings.chunks;
    let mut source = baler::source(config)?;
    let written = Counts::default();
    let mut sink = ParquetFolder::new(folder, settings).counting(written.clone());
    source.run(&mut sink, Stop::default(), |_| {
        !is_stopped.load(Ordering::Acquire)
    })?;
    let report = source.close(Instant::now() + Duration::from_secs(10))?;
    println!(
        "{} records in {} chunks",
        written.records(),
        report.acknowledged
    );
    Ok(())
}
