//! The body of the fuzz target, also used by the test that replays its corpus.

use std::error::Error;
use std::fs;
use std::path::Path;
use std::time::Instant;

use baler_common::transport::{ChunkReader as _, Received};
use memchr::memchr;

use super::{KiekerLogConfig, KiekerLogReader};
use crate::container::decoder;

/// The result of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Outcome {
    /// Records that were read.
    pub records: usize,
    /// Parts that were refused, entries of the map included.
    pub damaged: usize,
}

/// Writes a map and a file of a log to the folder and reads them. The first 0xff byte of the input
/// separates the two. Decodes every chunk.
///
/// # Errors
///
/// A finding: an effect that no input should have.
pub fn read(input: &[u8], folder: &Path) -> Result<Outcome, Box<dyn Error>> {
    let (map, log) = input.split_at(memchr(0xff, input).unwrap_or(input.len()));
    let log = log.strip_prefix(b"\xff").unwrap_or(log);
    fs::create_dir_all(folder)?;
    fs::write(folder.join("kieker.map"), map)?;
    fs::write(folder.join("kieker-1.dat"), log)?;
    let mut reader = KiekerLogReader::open(KiekerLogConfig::new(folder))?;
    let mut decoder = decoder();
    let mut outcome = Outcome::default();
    let mut tokens = Vec::new();
    loop {
        match reader.receive(Instant::now())? {
            Received::Chunk(delivery) => {
                let records = decoder.decode(&delivery.bytes)?.batch.len();
                let announced = delivery.meta.map(|meta| meta.records);
                if announced != u32::try_from(records).ok() {
                    return Err("the number of records is wrong".into());
                }
                outcome.records += records;
                tokens.push(delivery.token);
            }
            Received::Damaged(damaged) => {
                if damaged.reason.len() > 4_000 {
                    return Err("the message is too long".into());
                }
                outcome.damaged += 1;
                tokens.extend(damaged.token);
            }
            _ => break,
        }
    }
    Ok(outcome)
}
