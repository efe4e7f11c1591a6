//! The user's records, which a sweep sends instead of the calls of the workload.

use std::fs;
use std::path::{Path, PathBuf};

use baler_common::container::{
    ChunkDecoder, ChunkHeader, ChunkSerializer as _, Compression, NativeSerializer,
};
use baler_common::record::{BatchBuilder, DynamicRecord, RecordRef, RowWriter};
use baler_common::transport::{ChunkIdentity, Epoch, ProducerId};
use serde::Serialize;

use crate::harness::Failure;
use crate::machine::without_secrets;
use crate::statistics::to_f64;

/// The largest number of records ...
const MAX_RECORDS: u64 = 20_000;

/// ... and of bytes of their rows that a sweep takes from a source.
const MAX_BYTES: u64 = 16 << 20;

/// The first records of a source, in memory.
#[derive(Debug)]
pub struct UserRecords {
    /// Without secrets.
    from: String,
    records: Vec<DynamicRecord>,
    /// The bytes of their rows.
    bytes: u64,
}

/// The records of a sweep, for its report. The names are those in JSON.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct RecordsReport {
    /// The source, without secrets.
    from: String,
    records: u64,
    /// The bytes of their rows: their fields as plain bytes.
    bytes: u64,
    /// The mean size of a row.
    mean_bytes: f64,
    /// The CRC-32C of one chunk with all of them.
    checksum: u32,
}

impl UserRecords {
    /// Creates an empty collection for the source with this URI.
    pub fn new(uri: &str) -> Self {
        Self {
            from: without_secrets(uri),
            records: Vec::new(),
            bytes: 0,
        }
    }

    /// Keeps a copy of a record; returns whether there is room for more.
    pub fn push(&mut self, record: RecordRef<'_>) -> bool {
        let mut row = Vec::new();
        record.fields().write(&mut RowWriter::new(&mut row));
        self.bytes += row.len() as u64;
        self.records.push(record.into());
        self.count() < MAX_RECORDS && self.bytes < MAX_BYTES
    }

    /// Whether the source has no record.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    fn count(&self) -> u64 {
        self.records.len() as u64
    }

    /// The records in order.
    pub(super) fn records(&self) -> &[DynamicRecord] {
        &self.records
    }

    /// Writes the records to a file of this folder, for the writing processes.
    pub(super) fn save(&self, folder: &Path) -> Result<RecordsReport, Failure> {
        let failed = "keep the records";
        let mut builder = BatchBuilder::new();
        for record in &self.records {
            let pushed = builder.push_dynamic(record);
            pushed.map_err(Failure::cannot(failed))?;
        }
        let serializer = NativeSerializer::new(Compression::None);
        let mut serializer = serializer.map_err(Failure::cannot(failed))?;
        let mut chunk = Vec::new();
        let written = serializer.serialize(builder.batch(), &header(), &mut chunk);
        written.map_err(Failure::cannot(failed))?;
        fs::create_dir_all(folder).map_err(Failure::cannot(failed))?;
        fs::write(file(folder), &chunk).map_err(Failure::cannot(failed))?;
        let checksum = *chunk.last_chunk().expect("a chunk ends with its checksum");
        let records = self.count().max(1);
        Ok(RecordsReport {
            from: self.from.clone(),
            records,
            bytes: self.bytes,
            mean_bytes: to_f64(self.bytes) / to_f64(records),
            checksum: u32::from_le_bytes(checksum),
        })
    }
}

impl RecordsReport {
    /// The mean size of a record's row, in whole bytes.
    pub(super) const fn row_bytes(&self) -> u64 {
        self.bytes.div_ceil(self.records)
    }

    /// Returns a sentence about the records.
    pub(super) fn sentence(&self) -> String {
        let (records, from, mean) = (self.records, &self.from, self.mean_bytes);
        let limit = match self.bytes {
            bytes if bytes < MAX_BYTES => "",
            _ => ", since a sweep keeps 16 MiB",
        };
        format!(
            "Sent again and again: records of {from} (the first {records}{limit}), {mean:.0} bytes each \
             on average."
        )
    }
}

/// Returns the path of the file in a folder of results.
pub(super) fn file(folder: &Path) -> PathBuf {
    folder.join("sweep-records.balr")
}

/// Reads the records of a file.
pub(super) fn read(path: &Path) -> Result<Vec<DynamicRecord>, Failure> {
    let failed = "read the records";
    let chunk = fs::read(path).map_err(Failure::cannot(failed))?;
    let decoded = ChunkDecoder::default().decode(&chunk);
    let batch = decoded.map_err(Failure::cannot(failed))?.batch;
    Ok(batch.records().map(DynamicRecord::from).collect())
}

/// Returns the header of a chunk without a controller.
pub(super) fn header() -> ChunkHeader {
    ChunkHeader::new(ChunkIdentity {
        producer: ProducerId::new(1),
        epoch: Epoch {
            start_unix_ns: 1,
            random: 1,
        },
        lane: 0,
        sequence: 1,
    })
}

#[cfg(test)]
mod tests;
