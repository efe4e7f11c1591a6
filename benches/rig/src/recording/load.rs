//! Where calls come from.

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use baler_analysis::kieker_log::{LogReader, LogSettings};
use baler_common::container::ChunkDecoder;
use baler_common::record::kieker::OperationExecutionRecord;
use baler_common::record::{RecordRef, read};
use baler_connector_file::{PathItem, read_path};

use super::Recording;
use crate::failure::Failure;
use crate::workload::{Call, Workload};

/// Where the calls of a [`Recording`] come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// [`Workload`], by its seed.
    Generated,
    /// A folder with a log of Kieker's.
    KiekerLog(PathBuf),
    /// Chunks: a folder of segments, one segment, or a file of chunks.
    Chunks(PathBuf),
}

impl FromStr for Origin {
    type Err = Failure;

    fn from_str(text: &str) -> Result<Self, Failure> {
        let path = |rest: &str| PathBuf::from(rest.strip_prefix("//").unwrap_or(rest));
        match text.split_once(':') {
            None if text == "generated" => Ok(Self::Generated),
            Some(("kieker-log", rest)) if !rest.is_empty() => Ok(Self::KiekerLog(path(rest))),
            Some(("file", rest)) if !rest.is_empty() => Ok(Self::Chunks(path(rest))),
            _ => Err(Failure::new(format!(
                "{text:?} is no workload; use generated, kieker-log:DIR or file:PATH"
            ))),
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Generated => f.write_str("generated"),
            Self::KiekerLog(folder) => write!(f, "kieker-log:{}", folder.display()),
            Self::Chunks(path) => write!(f, "file:{}", path.display()),
        }
    }
}

impl Recording {
    /// So many calls of the [`Workload`] of this seed.
    ///
    /// `clock_step_ns` is the step of the clock that took the times, which are rounded down to its
    /// multiples: 1 leaves them as they are.
    pub fn generated(seed: u64, records: usize, clock_step_ns: u32) -> Self {
        let mut workload = Workload::new(seed);
        let mut calls: Vec<_> = workload.by_ref().take(records).collect();
        let step = i64::from(clock_step_ns.max(1));
        for call in &mut calls {
            call.tin -= call.tin.rem_euclid(step);
            call.tout -= call.tout.rem_euclid(step);
        }
        let hosts = workload.hosts().iter();
        Self {
            operations: workload.operations().to_vec(),
            sessions: workload.sessions().to_vec(),
            hosts: hosts.map(|host| (*host).to_owned()).collect(),
            calls,
        }
    }

    /// At most so many operation executions of a log that Kieker wrote.
    ///
    /// Records of other types are passed over.
    ///
    /// # Errors
    ///
    /// The folder cannot be read, or has no such record.
    pub fn of_log(folder: &Path, records: usize) -> Result<Self, Failure> {
        let cannot = Failure::cannot("read the log");
        let log = LogReader::open(folder, LogSettings::default());
        let mut loading = Loading::default();
        for record in log.map_err(&cannot)? {
            if loading.recording.calls.len() >= records {
                break;
            }
            loading.add(record.map_err(&cannot)?.as_ref())?;
        }
        loading.end(&folder.display().to_string())
    }

    /// At most so many operation executions of the chunks at this path: what an application
    /// wrote to a `file:` URI, or what was kept of another medium.
    ///
    /// Records of other types are passed over.
    ///
    /// # Errors
    ///
    /// The path cannot be read, a chunk is broken, or there is no such record.
    pub fn of_chunks(path: &Path, records: usize) -> Result<Self, Failure> {
        let chunks = read_path(path).map_err(Failure::cannot("open the chunks"))?;
        let mut decoder = ChunkDecoder::default();
        let mut loading = Loading::default();
        for chunk in chunks {
            match chunk.map_err(Failure::cannot("read the chunks"))? {
                PathItem::Chunk(chunk) => {
                    let decoded = decoder.decode(&chunk.bytes);
                    let batch = decoded.map_err(Failure::cannot("decode a chunk"))?.batch;
                    let left = records.saturating_sub(loading.recording.calls.len());
                    for record in batch.records().take(left) {
                        loading.add(record)?;
                    }
                }
                PathItem::Damaged(damaged) => {
                    let reason = format!("{}: {}", damaged.origin, damaged.reason);
                    return Err(Failure::new(reason));
                }
            }
            if loading.recording.calls.len() >= records {
                break;
            }
        }
        loading.end(&path.display().to_string())
    }
}

/// A recording while records come.
#[derive(Default)]
struct Loading {
    recording: Recording,
    operations: HashMap<String, usize>,
    sessions: HashMap<String, usize>,
    hosts: HashMap<String, usize>,
}

impl Loading {
    fn add(&mut self, record: RecordRef<'_>) -> Result<(), Failure> {
        let is = <OperationExecutionRecord as baler_common::record::Record>::schema();
        if record.type_name() != is.name() {
            return Ok(());
        }
        let record: OperationExecutionRecord =
            read(record.fields()).map_err(Failure::cannot("understand a record"))?;
        let recording = &mut self.recording;
        let call = Call {
            operation: position(
                &mut self.operations,
                &mut recording.operations,
                record.operation_signature,
            ),
            session: position(
                &mut self.sessions,
                &mut recording.sessions,
                record.session_id,
            ),
            host: position(&mut self.hosts, &mut recording.hosts, record.hostname),
            trace_id: record.trace_id,
            tin: record.tin,
            tout: record.tout,
            eoi: record.eoi,
            ess: record.ess,
        };
        recording.calls.push(call);
        Ok(())
    }

    fn end(self, place: &str) -> Result<Recording, Failure> {
        if self.recording.calls.is_empty() {
            let reason = format!("there is no operation execution in {place}");
            return Err(Failure::new(reason));
        }
        Ok(self.recording)
    }
}

/// The position of a text among those seen, which it joins if it is new.
fn position(known: &mut HashMap<String, usize>, texts: &mut Vec<String>, text: String) -> usize {
    if let Some(position) = known.get(&text) {
        return *position;
    }
    let position = texts.len();
    texts.push(text.clone());
    known.insert(text, position);
    position
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log_of_2010() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../analysis/tests/data/kieker/operation-executions-2010")
    }

    #[test]
    fn origins_are_read_as_they_are_shown() {
        for text in ["generated", "kieker-log:/var/log/x", "file:/srv/chunks"] {
            assert_eq!(text.parse::<Origin>().unwrap().to_string(), text);
        }
        assert_eq!(
            "file:///srv/chunks".parse(),
            Ok(Origin::Chunks("/srv/chunks".into()))
        );
        for wrong in ["", "log", "file:", "kafka://host/topic"] {
            assert!(wrong.parse::<Origin>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_log_of_2010_is_read() {
        let recording = Recording::of_log(&log_of_2010(), usize::MAX).unwrap();
        assert_eq!(recording.calls().len(), 6_540);
        let few = Recording::of_log(&log_of_2010(), 10).unwrap();
        assert_eq!(few.calls(), &recording.calls()[..10]);
        let first = few.plain(&few.calls()[0]).unwrap();
        assert!(
            first.operation_signature.contains('('),
            "{}",
            first.operation_signature
        );
    }

    #[test]
    fn times_are_multiples_of_the_clocks_step() {
        let fine = Recording::generated(1, 1_000, 1);
        let coarse = Recording::generated(1, 1_000, 10);
        for (fine, coarse) in fine.calls().iter().zip(coarse.calls()) {
            assert!((0..10).contains(&(fine.tin - coarse.tin)));
            assert_eq!((coarse.tin % 10, coarse.tout % 10), (0, 0));
        }
    }

    #[test]
    fn a_capture_without_executions_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        assert!(Recording::of_chunks(folder.path(), 10).is_err());
    }
}
