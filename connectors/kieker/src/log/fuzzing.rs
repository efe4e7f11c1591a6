//! The body of the fuzz target, also used by the test that replays its corpus.

use std::path::Path;
use std::sync::Arc;

use baler_common::container::{ChunkDecoder, ChunkHeader, ChunkSerializer, KiekerSerializer};
use baler_common::record::{BatchBuilder, Catalog};
use baler_common::transport::{ChunkIdentity, Epoch, ProducerId};

use super::dat::DatReader;
use super::{LogError, LogMap};

/// The result of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Outcome {
    /// Records that were read.
    pub records: usize,
    /// Lines that were refused, lines of the map included.
    pub bad_lines: usize,
}

/// Reads a map and a file of a log, parted by the first zero byte, and sends the records through
/// Kieker's container.
///
/// # Errors
///
/// A finding: something that no input should cause.
pub fn read(input: &[u8]) -> Result<Outcome, Box<dyn std::error::Error>> {
    const LINE_BYTES: usize = 4_096;
    let mut parts = input.splitn(2, |byte| *byte == 0);
    let (map, log) = (
        parts.next().unwrap_or_default(),
        parts.next().unwrap_or_default(),
    );
    let mut outcome = Outcome::default();
    let file: Arc<Path> = Arc::from(Path::new("kieker"));
    let map = LogMap::read(&file, map, LINE_BYTES, &Catalog::shared_kieker(), |line| {
        outcome.bad_lines = outcome.bad_lines.saturating_add(1);
        shown(&line)
    })?;
    let mut reader = DatReader::new(file, log, Arc::new(map), LINE_BYTES);
    let mut builder = BatchBuilder::new();
    loop {
        match reader.next_record() {
            Ok(Some(record)) => builder.push_dynamic(&record)?,
            Ok(None) => break,
            Err(LogError::Line(line)) => {
                outcome.bad_lines = outcome.bad_lines.saturating_add(1);
                shown(&line)?;
            }
            Err(error) => return Err(error.into()),
        }
    }
    outcome.records = builder.len();
    let header = ChunkHeader::new(ChunkIdentity {
        producer: ProducerId::new(0),
        epoch: Epoch {
            start_unix_ns: 0,
            random: 0,
        },
        lane: 0,
        sequence: 0,
    });
    let mut chunk = Vec::new();
    KiekerSerializer::new().serialize(builder.batch(), &header, &mut chunk)?;
    let decoded = ChunkDecoder::default().decode(&chunk)?;
    if decoded.batch == *builder.batch() {
        Ok(outcome)
    } else {
        Err("the records changed on their way through the container".into())
    }
}

/// Checks that a message is short, whatever the line.
fn shown(line: &super::BadLine) -> Result<(), LogError> {
    if line.to_string().len() > 4_000 {
        let error = std::io::Error::other("the message is too long");
        return Err(LogError::io(&line.file, error));
    }
    Ok(())
}
