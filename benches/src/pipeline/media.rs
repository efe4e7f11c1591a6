//! From `emit` through a medium.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use baler_common::container::ChunkDecoder;
use baler_common::transport::{ChunkReader as _, ChunkWriter};
use baler_connector_file::{FileReader, FileReaderConfig, FileWriter, FileWriterConfig};
use baler_connector_null::{NullConfig, NullWriter};
use baler_connector_tcp::{TcpConfig, TcpReader, TcpWriter};
use baler_rig::checksum::Checksum;
use baler_rig::cpu::Stopwatch;

use super::case::{Case, FileSync};
use super::consume::Consumed;
use super::keeping::{Keeping, Kept};
use super::load::Load;
use super::row::Sample;
use super::send::{PATIENCE, send};
use crate::failure::Failure;

/// How soon a consumer looks whether the sender has ended; it adds that much to a measurement.
const LOOK_AGAIN: Duration = Duration::from_millis(1);

/// To a writer that discards: what it counted must be what was emitted.
pub(super) fn null(case: &Case, load: &Load) -> Result<Sample, Failure> {
    let writer = NullWriter::new(NullConfig::default());
    let counts = writer.counts();
    let (sample, ()) = send(case, load, Box::new(writer), || Ok(()))?;
    if counts.records() != load.records() {
        let (found, expected) = (counts.records(), load.records());
        let reason = format!("{found} records of {expected} came to the writer");
        return Err(Failure::new(reason));
    }
    Ok(sample)
}

/// As [`null`], but keeps the chunks and checks what is in them.
pub(super) fn null_in_full(case: &Case, load: &Load) -> Result<(), Failure> {
    let kept = Kept::default();
    let writer: Box<dyn ChunkWriter> = Box::new(Keeping {
        writer: Box::new(NullWriter::new(NullConfig::default())),
        kept: Arc::clone(&kept),
    });
    send(case, load, writer, || Ok(()))?;
    let mut decoder = ChunkDecoder::default();
    let mut found = Checksum::default();
    for chunk in kept.lock().unwrap_or_else(PoisonError::into_inner).iter() {
        let decoded = decoder.decode(chunk);
        found.add(&decoded.map_err(Failure::cannot("decode a chunk"))?.batch);
    }
    load.check(found)
}

/// To a folder, which is then read.
pub(super) fn file(case: &Case, load: &Load, folder: &Path) -> Result<Sample, Failure> {
    let folder = temporary(folder)?;
    let sync = case.sync.unwrap_or(FileSync::None);
    let sample = write(case, load, folder.path(), sync)?;
    let found = read(load, folder.path())?;
    load.check(found.checksum)?;
    Ok(sample)
}

/// From a folder, which was written before.
pub(super) fn file_read(case: &Case, load: &Load, folder: &Path) -> Result<Sample, Failure> {
    let folder = temporary(folder)?;
    write(case, load, folder.path(), FileSync::None)?;
    let stopwatch = Stopwatch::start();
    let found = read(load, folder.path())?;
    let cost = stopwatch.cost();
    load.check(found.checksum)?;
    Ok(Sample {
        cost,
        chunk_bytes: found.chunk_bytes,
    })
}

fn temporary(folder: &Path) -> Result<tempfile::TempDir, Failure> {
    tempfile::tempdir_in(folder).map_err(Failure::cannot("make a folder"))
}

fn write(case: &Case, load: &Load, folder: &Path, sync: FileSync) -> Result<Sample, Failure> {
    let mut config = FileWriterConfig::new(folder);
    config.sync = sync.policy();
    let (sample, ()) = send(case, load, Box::new(FileWriter::new(config)), || Ok(()))?;
    Ok(sample)
}

fn read(load: &Load, folder: &Path) -> Result<Consumed, Failure> {
    let opened = FileReader::open(FileReaderConfig::new(folder));
    let mut reader = opened.map_err(Failure::cannot("open the folder"))?;
    let mut consumed = Consumed::default();
    let by = Instant::now() + PATIENCE;
    // To its end, so that a record too many is found.
    consumed.take(&mut reader, load.records().saturating_add(1), by)?;
    Ok(consumed)
}

/// Over loopback, with both ends in this process: their CPU time adds up.
pub(super) fn tcp(case: &Case, load: &Load) -> Result<Sample, Failure> {
    let reader = TcpReader::bind(TcpConfig::new("127.0.0.1", 0));
    let mut reader = Box::new(reader.map_err(Failure::cannot("listen"))?);
    let writer = TcpWriter::new(TcpConfig::new("127.0.0.1", reader.local_addr().port()));
    let sent = Arc::new(AtomicBool::new(false));
    let stop = Arc::clone(&sent);
    let consumer = thread::spawn(move || {
        let mut consumed = Consumed::default();
        // To the sender's end: its last chunk may hold no record, and still waits for its settlement.
        let end = loop {
            let end = consumed.take(&mut *reader, u64::MAX, Instant::now() + LOOK_AGAIN);
            if end.is_err() || stop.load(Ordering::Acquire) {
                break end;
            }
        };
        (reader, consumed, end)
    });
    let join = || {
        sent.store(true, Ordering::Release);
        let ended = consumer.join();
        ended.map_err(|_| Failure::new("the consumer panicked"))
    };
    let (sample, (mut reader, mut consumed, end)) = send(case, load, Box::new(writer), join)?;
    end?;
    // What came beyond would be a duplicate that nothing called for.
    consumed.take(&mut *reader, u64::MAX, Instant::now())?;
    reader.close(Instant::now() + PATIENCE);
    load.check(consumed.checksum)?;
    Ok(sample)
}
