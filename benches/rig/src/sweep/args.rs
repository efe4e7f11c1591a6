//! The flags of a sweep, and its cases.

use std::iter;
use std::num::{NonZeroU16, NonZeroU32, NonZeroUsize};
use std::path::PathBuf;
use std::time::Duration;

use baler_common::container::Compression;
use baler_common::transport::ContainerKind;
use baler_common::transport::uri::{Uri, parse_bytes, parse_duration};
use clap::Args;

use super::case::{Case, Way};
use super::recommend::Bounds;
use crate::harness::{Failure, Format};

/// The default limit of `auto`, from emitting to confirmation.
const AUTO_LATENCY: Duration = Duration::from_millis(100);

/// Compression and wait time of chunks.
type Setting = (Compression, Duration);

/// The default of the collector.
const WAIT_TIME: Duration = Duration::from_millis(500);

/// Flags of a sweep.
#[derive(Debug, Clone, Args)]
pub struct SweepArgs {
    /// The medium: kafka:, kafka+mock: (a cluster in a process of its own), amqp: or tcp:; file: and
    /// null: without consumers
    #[arg(long, value_name = "URI", default_value = "kafka+mock:baler-sweep")]
    pub to: String,

    /// Where the readers read, if that is another URI (a queue behind an exchange, say)
    #[arg(long, value_name = "URI")]
    pub from: Option<String>,

    /// Measure with the first 20,000 records (16 MiB at most) of this URI, again and again, instead of
    /// synthetic calls. Any source of send --from; it keeps its records
    #[arg(long, value_name = "URI")]
    pub records_from: Option<String>,

    /// Records a chunk, or auto: the collector chooses
    #[arg(
        long,
        value_name = "N,…",
        value_delimiter = ',',
        default_value = "1,16,32,128,1024",
        value_parser = chunk_size
    )]
    pub chunk_sizes: Vec<ChunkSize>,

    /// Records a second: 10000, 10k, or max for as many as the medium takes
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_value = "10000", value_parser = rate)]
    pub rate: Vec<Rate>,

    /// The format of chunks: native, or kieker, which is never compressed and has no auto
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', default_value = "native", value_parser = container)]
    pub container: Vec<ContainerKind>,

    /// How native chunks are compressed: none, lz4, zstd, or zstd:1 to zstd:22
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', default_value = "none", value_parser = compression)]
    pub compression: Vec<Compression>,

    /// A chunk closes when its oldest record has waited this long [default: 500ms, or half of
    /// --max-latency if that is less]
    #[arg(long, value_name = "DURATION,…", value_delimiter = ',', value_parser = duration)]
    pub wait_time: Vec<Duration>,

    /// How many processes share the arriving chunks; 0 measures only writing
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_value = "1", value_parser = clap::value_parser!(u16).range(0..=64))]
    pub consumers: Vec<u16>,

    /// How long each run is measured
    #[arg(long, value_name = "N", default_value = "2")]
    pub seconds: NonZeroU32,

    /// How long the load runs before that
    #[arg(long, value_name = "DURATION", default_value = "500ms", value_parser = duration)]
    pub warm_up: Duration,

    /// How often each case is measured, each time with a process of its own
    #[arg(long, value_name = "R", default_value = "15")]
    pub repetitions: NonZeroUsize,

    /// In which order to measure, and which records
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,

    /// Do not measure the client library alone, which sends one message a record
    #[arg(long)]
    pub no_baseline: bool,

    /// The broker's process, if it runs on this machine, to measure its CPU time
    #[arg(long, value_name = "PID")]
    pub broker_pid: Option<NonZeroU32>,

    /// Recommend the cheapest size and wait time, by a model of the measured cases
    #[arg(long)]
    pub recommend: bool,

    /// Recommend only settings that deliver 99 % of the records within this time; also the bound of
    /// auto [default: no bound; 100ms for auto]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub max_latency: Option<Duration>,

    /// Recommend only settings with at most this many bytes a second on the wire [default: no bound]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub max_bytes_per_second: Option<u64>,

    /// How to print the cells
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub format: Format,

    /// The folder for the runs as they end, and for table, JSON and page in the end
    #[arg(long, value_name = "DIR", default_value = "baler-sweep")]
    pub results: PathBuf,
}

/// Records a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChunkSize {
    /// The collector chooses.
    Auto,
    /// This number.
    Of(NonZeroU32),
}

/// Records a second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Rate {
    /// As many as the medium takes.
    Max,
    /// This number.
    Of(f64),
}

impl Rate {
    const fn number(self) -> Option<f64> {
        match self {
            Self::Max => None,
            Self::Of(rate) => Some(rate),
        }
    }
}

impl SweepArgs {
    /// Checks, before anything is started, whether the medium can be measured in this way.
    ///
    /// # Errors
    ///
    /// It cannot; the error contains the reason.
    pub fn check(&self) -> Result<(), Failure> {
        let uri = Uri::parse(&self.to).map_err(Failure::cannot("use the URI"))?;
        if let Some(from) = &self.records_from
            && (*from == self.to || Some(from) == self.from.as_ref())
        {
            return Err(Failure::new(
                "--records-from is what the sweep itself reads, and it removes the records there: \
                 use another --to",
            ));
        }
        let has_native = self.container.contains(&ContainerKind::Native);
        if !has_native && self.chunk_sizes.contains(&ChunkSize::Auto) {
            return Err(Failure::new(
                "--chunk-sizes auto is measured with native chunks: add native to --container",
            ));
        }
        match uri.scheme() {
            "tcp" if partitions(&self.cases()) > 1 => {
                Err(Failure::new("tcp: has one receiver: --consumers must be 1"))
            }
            "tcp" if self.consumers.contains(&0) => Err(Failure::new(
                "tcp: nothing is sent without a receiver: --consumers must be 1",
            )),
            scheme @ ("file" | "null") if self.consumers.iter().any(|count| *count > 0) => {
                Err(Failure::new(format!(
                    "{scheme}: only writing is measured there: --consumers must be 0"
                )))
            }
            "kafka" | "kafka+mock" | "amqp" | "amqps" | "tcp" | "file" | "null" => Ok(()),
            other => Err(Failure::new(format!(
                "{other}: cannot be swept; use kafka:, kafka+mock:, amqp:, amqps:, tcp:, file: or null:"
            ))),
        }
    }

    /// Returns every URI. A URI may contain secrets.
    pub(super) fn uris(&self) -> impl Iterator<Item = &String> {
        let others = [self.from.as_ref(), self.records_from.as_ref()];
        iter::once(&self.to).chain(others.into_iter().flatten())
    }

    pub(super) fn bounds(&self) -> Bounds {
        Bounds {
            max_latency_ms: self.max_latency.map(|time| time.as_secs_f64() * 1e3),
            max_bytes_per_second: self.max_bytes_per_second,
        }
    }

    /// Half of the allowed latency is left for the steps after the collector.
    fn wait_times(&self) -> Vec<Duration> {
        if !self.wait_time.is_empty() {
            return unique(&self.wait_time);
        }
        let half = self.max_latency.map(|latency| latency / 2);
        vec![half.map_or(WAIT_TIME, |half| half.min(WAIT_TIME))]
    }

    /// Whether the client library alone is measured. Without a broker there is none, or it is
    /// Baler's own.
    fn has_baseline(&self) -> bool {
        let is_local = ["file:", "null:", "tcp:"]
            .iter()
            .any(|it| self.to.starts_with(it));
        !self.no_baseline && !is_local
    }

    /// Every case, in the order of the table: the client library first, as in the paper.
    pub(super) fn cases(&self) -> Vec<Case> {
        let sizes = unique(&self.chunk_sizes);
        let consumers = unique(&self.consumers);
        let waits = self.wait_times();
        let bound = self.max_latency.unwrap_or(AUTO_LATENCY);
        let mut settings: Vec<(Way, Option<u32>, Setting)> = Vec::new();
        let mut chunks = Vec::new();
        for container in unique(&self.container) {
            match container {
                ContainerKind::Kieker => chunks.push((Way::Kieker, Compression::None)),
                _ => chunks.extend(
                    unique(&self.compression)
                        .into_iter()
                        .map(|it| (Way::Baler, it)),
                ),
            }
        }
        for (way, compression) in chunks {
            for wait in &waits {
                settings.extend(sizes.iter().filter_map(|size| match size {
                    ChunkSize::Auto => None,
                    ChunkSize::Of(records) => {
                        Some((way, Some(records.get()), (compression, *wait)))
                    }
                }));
            }
        }
        if sizes.contains(&ChunkSize::Auto) {
            let compressions = unique(&self.compression).into_iter();
            settings.extend(compressions.map(|it| (Way::Auto, None, (it, bound))));
        }
        let mut cases = Vec::new();
        for rate in unique(&self.rate) {
            let plain = |way, consumers| Case {
                way,
                chunk_records: None,
                rate: rate.number(),
                compression: None,
                wait_time_ms: None,
                consumers,
            };
            if rate != Rate::Max {
                let fewest = consumers.first().copied().unwrap_or(1);
                cases.push(plain(Way::Pacing, fewest));
            }
            for consumers in &consumers {
                if self.has_baseline() {
                    cases.push(plain(Way::Pipelined, *consumers));
                    cases.push(plain(Way::Awaiting, *consumers));
                }
                cases.extend(
                    settings
                        .iter()
                        .map(|(way, size, (compression, wait))| Case {
                            chunk_records: *size,
                            compression: Some(compression.to_string()),
                            wait_time_ms: Some(wait.as_secs_f64() * 1e3),
                            ..plain(*way, *consumers)
                        }),
                );
            }
        }
        cases
    }
}

/// Each value once, in order.
fn unique<T: PartialEq + Copy>(values: &[T]) -> Vec<T> {
    let mut found: Vec<T> = Vec::new();
    for value in values {
        if !found.contains(value) {
            found.push(*value);
        }
    }
    found
}

/// The number of partitions that a topic of the embedded cluster needs.
pub(super) fn partitions(cases: &[Case]) -> u16 {
    let consumers = cases.iter().map(|case| case.consumers).max();
    consumers
        .and_then(NonZeroU16::new)
        .map_or(1, NonZeroU16::get)
}

fn chunk_size(text: &str) -> Result<ChunkSize, String> {
    match text {
        "auto" => Ok(ChunkSize::Auto),
        text => text
            .parse()
            .map(ChunkSize::Of)
            .map_err(|_| format!("`{text}` is no size; write records a chunk or auto")),
    }
}

fn rate(text: &str) -> Result<Rate, String> {
    if text == "max" {
        return Ok(Rate::Max);
    }
    let (number, factor) = match text.strip_suffix(['k', 'M']) {
        Some(number) if text.ends_with('k') => (number, 1e3),
        Some(number) => (number, 1e6),
        None => (text, 1.0),
    };
    let rate = number.parse::<f64>().ok().map(|rate| rate * factor);
    rate.filter(|rate| rate.is_finite() && *rate >= 1.0)
        .map(Rate::Of)
        .ok_or_else(|| {
            format!("`{text}` is no rate; write records a second: 500, 20k, 1.5M or max")
        })
}

fn container(text: &str) -> Result<ContainerKind, String> {
    ContainerKind::from_name(text)
        .filter(|kind| *kind != ContainerKind::Added)
        .ok_or_else(|| format!("`{text}` is no container; write native or kieker"))
}

fn compression(text: &str) -> Result<Compression, String> {
    text.parse::<Compression>()
        .map_err(|error| error.to_string())
}

fn duration(text: &str) -> Result<Duration, String> {
    parse_duration(text)
        .filter(|time| !time.is_zero())
        .ok_or_else(|| format!("`{text}` is no duration; write 250us, 500ms, 2s, 1.5m or 1h"))
}

fn size(text: &str) -> Result<u64, String> {
    parse_bytes(text).ok_or_else(|| format!("`{text}` is no size; write 65536, 64KiB or 1MB"))
}

#[cfg(test)]
pub(super) mod tests;
