//! What a caller names: a path, a URI, or chunks in memory; and how it is opened.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{fs, mem};

use baler::analysis::Source;
use baler::container::{ChunkExtent, Limits};
use baler::transport::uri::Uri;
use baler::transport::{
    Browse, ChunkReader, Damaged, Delivery, Media, Order, Origin, ReaderCapability,
    ReaderCloseReport, Received, Settled, Token, TransportError, Verdict,
};
use baler_connector_file::{FileReader, FileReaderConfig, chunk_files, chunk_numbers};
use baler_connector_kafka::{KafkaBrowser, KafkaConfig};
use baler_connector_kieker::{KiekerLogConfig, KiekerLogReader, is_log};
use bytes::Bytes;

use crate::error::{ReadError, Refuse};

/// The most chunks that are received and not settled: one is in work while the next one is read.
const DEMAND: usize = 2;

/// How long a cluster may take to tell its partitions and offsets.
const POSITIONS_TIMEOUT: Duration = Duration::from_secs(10);

/// A source of chunks. It can be opened any number of times.
#[derive(Debug, Clone)]
pub(crate) enum Input {
    /// Chunks in memory, one after the other.
    Bytes(Bytes),
    /// A folder of segments, one segment, or a file of chunks.
    File(PathBuf),
    /// Chunks of a folder of segments, by their numbers.
    Chunks(PathBuf, Range<u64>),
    /// These offsets of these partitions of a topic.
    Kafka(KafkaConfig, BTreeMap<i32, Range<i64>>),
    /// A folder with a log of Kieker.
    Log(PathBuf),
    /// Any medium.
    Uri(Uri),
}

impl Input {
    /// Returns the inputs that a text names: a URI, a file, a folder of segments, a log of Kieker, or
    /// the files of a folder of chunk files.
    ///
    /// # Errors
    ///
    /// There is nothing with this name, or nothing that can be read.
    pub(crate) fn named(text: &Path) -> Result<Vec<Self>, ReadError> {
        let metadata = match fs::metadata(text) {
            Ok(metadata) => metadata,
            Err(error) => {
                let uri = text.to_str().filter(|text| is_uri(text));
                let uri = uri.ok_or_else(|| ReadError::file(text, error))?;
                return Ok(vec![Self::Uri(Uri::parse(uri)?)]);
            }
        };
        if !metadata.is_dir() {
            return Ok(vec![Self::File(text.to_owned())]);
        }
        let files = chunk_files(text).map_err(|error| ReadError::file(text, error))?;
        Ok(match files.is_empty() {
            true if is_log(text) => vec![Self::Log(text.to_owned())],
            true => vec![Self::File(text.to_owned())],
            false => files.into_iter().map(Self::File).collect(),
        })
    }

    /// Returns the chunks at these offsets of these partitions. The URI names the topic; the ends are
    /// excluded.
    ///
    /// # Errors
    ///
    /// The URI is wrong, or not one of Kafka.
    pub(crate) fn kafka(uri: &str, ranges: BTreeMap<i32, Range<i64>>) -> Result<Self, ReadError> {
        Ok(Self::Kafka(topic(Uri::parse(uri)?)?, ranges))
    }

    /// Returns the offset of the oldest chunk and the one after the newest chunk, for each partition
    /// of a topic; a folder of segments has partition 0, and numbers of chunks as offsets.
    ///
    /// # Errors
    ///
    /// The medium cannot be read, or its chunks have no offsets.
    pub(crate) fn positions(&self) -> Result<BTreeMap<i32, Range<i64>>, ReadError> {
        match self {
            Self::File(folder) if !folder.is_file() => {
                let numbers = chunk_numbers(folder);
                let numbers = numbers.map_err(|error| ReadError::file(folder, error))?;
                let [start, end] = [numbers.start, numbers.end]
                    .map(|it| i64::try_from(it).expect("a folder has fewer than 2^63 chunks"));
                Ok(BTreeMap::from([(0, start..end)]))
            }
            Self::Uri(uri) if uri.scheme() == baler_connector_file::SCHEME => {
                Self::File(FileReaderConfig::from_uri(uri.clone())?.path).positions()
            }
            Self::Uri(uri) => {
                let by = Instant::now() + POSITIONS_TIMEOUT;
                Ok(KafkaBrowser::offsets(topic(uri.clone())?, by)?)
            }
            Self::Bytes(_) | Self::Chunks(..) | Self::File(_) | Self::Kafka(..) | Self::Log(_) => {
                Err(ReadError::Wrong(
                    "only a topic and a folder of segments have offsets".into(),
                ))
            }
        }
    }

    /// Opens a reader that takes nothing from other readers, and leaves no trace.
    ///
    /// # Errors
    ///
    /// The medium cannot be opened, or it has no end.
    pub(crate) fn reader(&self) -> Result<Box<dyn ChunkReader>, ReadError> {
        Ok(match self {
            Self::Bytes(bytes) => Box::new(Memory::new(bytes.clone())),
            Self::File(path) => Box::new(FileReader::open(FileReaderConfig::new(path))?),
            Self::Chunks(folder, numbers) => {
                let mut config = FileReaderConfig::new(folder);
                config.chunks = Some(numbers.clone());
                Box::new(FileReader::open(config)?)
            }
            Self::Kafka(config, ranges) => {
                let (config, ranges) = (config.clone(), ranges.clone());
                Box::new(KafkaBrowser::open_ranges(config, ranges)?)
            }
            Self::Log(path) => Box::new(KiekerLogReader::open(KiekerLogConfig::new(path))?),
            Self::Uri(uri) => browser(&baler::media(), uri)?,
        })
    }

    /// Opens a source that fails at the first chunk that does not decode.
    ///
    /// # Errors
    ///
    /// As [`reader`](Self::reader).
    pub(crate) fn source(&self) -> Result<Source, ReadError> {
        Ok(Source::new(self.reader()?)
            .with_decoder(baler::decoder(Limits::default()))
            .with_quarantine(Refuse)
            .with_demand(DEMAND))
    }
}

fn topic(uri: Uri) -> Result<KafkaConfig, ReadError> {
    let endpoint = uri.to_string();
    if uri.scheme() != baler_connector_kafka::SCHEME {
        return Err(ReadError::Wrong(format!(
            "{endpoint}: is no topic of Kafka"
        )));
    }
    let config = KafkaConfig::from_uri(uri);
    config.map_err(|error| ReadError::Wrong(format!("{endpoint}: {error}")))
}

/// Whether a text is meant as a URI: it begins with a known scheme, or looks like `scheme://`.
pub(crate) fn is_uri(text: &str) -> bool {
    baler::media().is_named_by(text) || text.contains("://")
}

fn browser(media: &Media, uri: &Uri) -> Result<Box<dyn ChunkReader>, ReadError> {
    let wrong = |reason: &str| ReadError::Wrong(format!("{uri}: {reason}"));
    let medium = media.of(uri)?;
    let factory = match medium.browser {
        Some(browser) => browser(uri.clone(), Browse::UntilNow),
        None => (medium.receiver)(uri.clone(), false),
    };
    let reader = factory.map_err(|it| wrong(&it.to_string()))?.open()?.reader;
    match reader.capability().ends {
        true => Ok(reader),
        false => Err(wrong("this medium has no end, so read would never return")),
    }
}

/// Reads chunks in memory.
#[derive(Debug)]
struct Memory {
    capability: ReaderCapability,
    rest: Bytes,
    position: u64,
}

impl Memory {
    fn new(bytes: Bytes) -> Self {
        let mut capability = ReaderCapability::new("bytes", Order::PerLane);
        capability.ends = true;
        Self {
            capability,
            rest: bytes,
            position: 0,
        }
    }
}

impl ChunkReader for Memory {
    fn capability(&self) -> &ReaderCapability {
        &self.capability
    }

    fn set_demand(&mut self, _chunks: usize) {}

    fn receive(&mut self, _by: Instant) -> Result<Received, TransportError> {
        if self.rest.is_empty() {
            return Ok(Received::End);
        }
        let origin = Origin {
            endpoint: "bytes".into(),
            lane: "memory".into(),
            position: self.position,
        };
        let left = self.rest.len();
        let length = match ChunkExtent::of(&self.rest) {
            Some(ChunkExtent::Bytes(length)) => usize::try_from(length).ok(),
            Some(ChunkExtent::ToEnd) => Some(left),
            None => None,
        };
        let Some(length) = length.filter(|length| *length <= left) else {
            // What follows the damage cannot be found with certainty.
            return Ok(Received::Damaged(Damaged {
                token: None,
                bytes: mem::take(&mut self.rest),
                origin,
                reason: "no whole chunk begins here".into(),
                peer: None,
            }));
        };
        let token = Token(self.position);
        self.position += length as u64;
        Ok(Received::Chunk(Delivery {
            token,
            bytes: self.rest.split_to(length),
            meta: None,
            origin,
            redelivered: false,
            attempts: 0,
        }))
    }

    fn settle(&mut self, _token: Token, _verdict: Verdict) -> Result<Settled, TransportError> {
        Ok(Settled::Done)
    }

    fn close(self: Box<Self>, _by: Instant) -> ReaderCloseReport {
        ReaderCloseReport::default()
    }
}
