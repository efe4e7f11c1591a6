//! The flags of a sweep, and its cases.

use std::num::{NonZeroU16, NonZeroU32, NonZeroUsize};
use std::path::PathBuf;
use std::time::Duration;

use baler_common::container::Compression;
use baler_common::transport::uri::{Uri, parse_bytes, parse_duration};
use clap::Args;

use super::case::{Case, Way};
use super::recommend::Bounds;
use crate::harness::{Failure, Format};

/// The bound from emitting to confirmation of `auto`, by default.
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

    /// How chunks are compressed: none, lz4, zstd, or zstd:1 to zstd:22
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', default_value = "none", value_parser = compression)]
    pub compression: Vec<Compression>,

    /// A chunk closes when its oldest record has waited this long [default: 500ms, or half of
    /// --max-latency if that is less]
    #[arg(long, value_name = "TIME,…", value_delimiter = ',', value_parser = duration)]
    pub wait_time: Vec<Duration>,

    /// How many processes share the arriving chunks; 0 measures only writing
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_value = "1", value_parser = clap::value_parser!(u16).range(0..=64))]
    pub consumers: Vec<u16>,

    /// How long each run is measured
    #[arg(long, value_name = "N", default_value = "2")]
    pub seconds: NonZeroU32,

    /// How long the load runs before that
    #[arg(long, value_name = "TIME", default_value = "500ms", value_parser = duration)]
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
    /// auto, which is 100 ms by default
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub max_latency: Option<Duration>,

    /// Recommend only settings with at most this many bytes a second on the wire
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub max_bytes_per_second: Option<u64>,

    /// How to print the cells
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub format: Format,

    /// The folder for the runs as they end, and for table, JSON and page in the end
    #[arg(long, value_name = "FOLDER", default_value = "baler-sweep")]
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
    /// Checks, before anything is started, whether the medium can be measured like this.
    ///
    /// # Errors
    ///
    /// It cannot; the error says why.
    pub fn check(&self) -> Result<(), Failure> {
        let uri = Uri::parse(&self.to).map_err(Failure::cannot("use the URI"))?;
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

    pub(super) fn bounds(&self) -> Bounds {
        Bounds {
            max_latency_ms: self.max_latency.map(|time| time.as_secs_f64() * 1e3),
            max_bytes_per_second: self.max_bytes_per_second,
        }
    }

    /// Half of the allowed latency is left for the way after the collector.
    fn wait_times(&self) -> Vec<Duration> {
        if !self.wait_time.is_empty() {
            return unique(&self.wait_time);
        }
        let half = self.max_latency.map(|latency| latency / 2);
        vec![half.map_or(WAIT_TIME, |half| half.min(WAIT_TIME))]
    }

    /// Whether the client library alone is measured. Without a broker there is none, or it is Baler.
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
        for compression in unique(&self.compression) {
            for wait in &waits {
                settings.extend(sizes.iter().filter_map(|size| match size {
                    ChunkSize::Auto => None,
                    ChunkSize::Of(records) => {
                        Some((Way::Baler, Some(records.get()), (compression, *wait)))
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
    let most = cases.iter().map(|case| case.consumers).max();
    most.and_then(NonZeroU16::new).map_or(1, NonZeroU16::get)
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
mod tests {
    use clap::{CommandFactory as _, Parser};

    use super::*;

    #[derive(Debug, Parser)]
    struct Command {
        #[command(flatten)]
        args: SweepArgs,
    }

    fn parse(words: &[&str]) -> SweepArgs {
        let words = ["sweep"].iter().chain(words);
        Command::try_parse_from(words).unwrap().args
    }

    #[test]
    fn the_defaults_are_the_papers_and_end_within_a_quarter_of_an_hour() {
        Command::command().debug_assert();
        let args = parse(&[]);
        let cases = args.cases();
        let labels: Vec<_> = cases.iter().map(Case::label).collect();
        assert_eq!(
            labels,
            [
                "pacing",
                "pipelined",
                "awaiting",
                "1",
                "16",
                "32",
                "128",
                "1024"
            ]
        );
        // A second and a half to start, drain and end each run.
        let run = args.warm_up.as_secs_f64() + f64::from(args.seconds.get()) + 1.5;
        let runs = cases.len() * args.repetitions.get();
        let time = f64::from(u32::try_from(runs).unwrap()) * run;
        assert!(time < 14.5 * 60.0, "{time}");
    }

    #[test]
    fn chunks_that_size_themselves_are_a_case_beside_each_compression() {
        let args = [
            "--chunk-sizes=auto,16",
            "--compression=none,lz4",
            "--wait-time=1ms,2ms",
        ];
        let cases = parse(&args).cases();
        let autos: Vec<_> = cases.iter().filter(|case| case.way == Way::Auto).collect();
        assert_eq!(autos.len(), 2);
        for auto in autos {
            assert_eq!((auto.chunk_records, auto.wait_time_ms), (None, Some(100.0)));
        }
        assert_eq!(
            cases.iter().filter(|case| case.way == Way::Baler).count(),
            4
        );
    }

    #[test]
    fn what_nobody_reads_is_only_written() {
        let cases = parse(&["--to=null:", "--consumers=0"]).cases();
        assert!(
            cases
                .iter()
                .all(|case| !case.is_read() && !case.way.is_plain())
        );
        for (words, is_right) in [
            (["--to=null:", "--consumers=0"], true),
            (["--to=file:///tmp/x", "--consumers=0"], true),
            (["--to=kafka+mock:x", "--consumers=0,1"], true),
            (["--rate=10k,max", "--consumers=1"], true),
            (["--to=kafka://a/x", "--rate=max"], true),
            (["--to=null:", "--consumers=1"], false),
            (["--to=tcp://127.0.0.1:0", "--consumers=0"], false),
        ] {
            assert_eq!(parse(&words).check().is_ok(), is_right, "{words:?}");
        }
    }

    #[test]
    fn every_combination_is_a_case_and_each_once() {
        let cases = parse(&[
            "--chunk-sizes=8,8,64",
            "--rate=1k,max",
            "--compression=none,zstd",
            "--wait-time=100ms",
            "--consumers=1,2",
        ])
        .cases();
        let baler = cases.iter().filter(|case| case.way == Way::Baler).count();
        assert_eq!(baler, 2 * 2 * 2 * 2);
        let of = |way| cases.iter().filter(|case| case.way == way).count();
        assert_eq!((of(Way::Pipelined), of(Way::Awaiting)), (4, 4));
        // What the load costs does not depend on the medium.
        assert_eq!(of(Way::Pacing), 1);
        assert_eq!(partitions(&cases), 2);
    }

    #[test]
    fn wrong_values_are_refused() {
        for wrong in [
            "--rate=0",
            "--chunk-sizes=0",
            "--compression=gzip",
            "--wait-time=0s",
            "--consumers=65",
        ] {
            assert!(
                Command::try_parse_from(["sweep", wrong]).is_err(),
                "{wrong}"
            );
        }
        let bounded = parse(&["--max-latency=100ms"]).cases();
        let wait = bounded.iter().find_map(|case| case.wait_time_ms);
        assert_eq!(wait, Some(50.0));
        assert_eq!(rate("2.5k"), Ok(Rate::Of(2_500.0)));
        assert_eq!(rate("max"), Ok(Rate::Max));
    }
}
