//! Readers of lines, and what comes from them.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use baler_common::container::ChunkDecoder;
use baler_common::record::ValueRef;
use baler_common::transport::uri::Uri;
use baler_common::transport::{ChunkReader, Damaged, Received, Token, Verdict};
use baler_connector_file::lines::{LinesConfig, LinesReader};

pub(crate) struct Folder(tempfile::TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Opens `scheme:folder/rest`.
    pub(crate) fn reader(&self, scheme: &str, rest: &str) -> Box<dyn ChunkReader> {
        let uri = format!("{scheme}:{}", self.path(rest).display());
        let uri = uri.replace(
            "position=",
            &format!("position={}/", self.0.path().display()),
        );
        let config = LinesConfig::from_uri(Uri::parse(&uri).unwrap(), false).unwrap();
        Box::new(LinesReader::open(config).unwrap())
    }
}

pub(crate) fn append(path: &Path, bytes: impl AsRef<[u8]>) {
    let mut file = OpenOptions::new()
        .append(true)
        .create(true)
        .open(path)
        .unwrap();
    file.write_all(bytes.as_ref()).unwrap();
}

/// What came from a reader.
#[derive(Default)]
pub(crate) struct Came {
    /// Type and values of each record.
    pub(crate) records: Vec<String>,
    pub(crate) damaged: Vec<Damaged>,
    pub(crate) tokens: Vec<Token>,
    pub(crate) ended: bool,
}

impl Came {
    /// Returns offsets, bytes and reasons of what is no record.
    pub(crate) fn bad(&self) -> Vec<(u64, &[u8], &str)> {
        let bad = self.damaged.iter();
        bad.map(|it| (it.origin.position, &*it.bytes, &*it.reason))
            .collect()
    }
}

/// Receives until the end, or until nothing comes for this time.
pub(crate) fn receive(reader: &mut dyn ChunkReader, silence: Duration) -> Came {
    let mut came = Came::default();
    let mut decoder = ChunkDecoder::default();
    loop {
        match reader.receive(Instant::now() + silence).unwrap() {
            Received::Chunk(chunk) => {
                let decoded = decoder.decode(&chunk.bytes).unwrap();
                let meta = chunk.meta.unwrap();
                assert_eq!(meta.records as usize, decoded.batch.len());
                came.tokens.push(chunk.token);
                for record in decoded.batch.records() {
                    let values = record.fields().values().map(|(name, value)| match value {
                        ValueRef::String(text) => format!("{name}={text}"),
                        ValueRef::Signed(number) => format!("{name}={number}"),
                        ValueRef::Unsigned(number) => format!("{name}={number}"),
                        other => format!("{name}={other:?}"),
                    });
                    let values: Vec<_> = values.collect();
                    came.records
                        .push(format!("{} {}", record.type_name(), values.join(" ")));
                }
            }
            Received::Damaged(damaged) => {
                came.tokens.push(damaged.token.unwrap());
                came.damaged.push(damaged);
            }
            Received::End => {
                came.ended = true;
                return came;
            }
            Received::Idle if came.tokens.is_empty() || silence < Duration::from_secs(1) => {
                return came;
            }
            // The end is only told when everything is settled.
            Received::Idle => return came,
            other => panic!("{other:?}"),
        }
    }
}

/// Receives and settles until nothing more comes.
pub(crate) fn all(reader: &mut dyn ChunkReader) -> Came {
    let mut all = Came::default();
    loop {
        let came = receive(reader, Duration::from_millis(250));
        for token in &came.tokens {
            reader.settle(*token, Verdict::Ack).unwrap();
        }
        let is_done = came.ended || came.tokens.is_empty();
        all.ended = came.ended;
        all.records.extend(came.records);
        all.damaged.extend(came.damaged);
        if is_done {
            return all;
        }
    }
}
