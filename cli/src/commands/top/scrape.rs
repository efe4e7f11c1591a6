//! Reading the figures of a process over HTTP.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use hyper::StatusCode;

use crate::exit::Failure;
use crate::http_client::{self, base_url};

/// How long an answer may take.
const TIMEOUT: Duration = Duration::from_secs(3);

/// The largest answer that is read. It has room for about ten thousand lanes.
const MAX_BYTES: usize = 8 << 20;

/// Asks one process for its figures.
#[derive(Debug)]
pub(super) struct Scraper {
    url: String,
    address: String,
}

/// The figures of a process at one moment.
#[derive(Debug)]
pub(super) struct Snapshot {
    pub(super) taken: Instant,
    samples: Vec<Sample>,
}

/// One series of a metric.
#[derive(Debug)]
struct Sample {
    metric: String,
    /// Names and values.
    labels: Vec<(String, String)>,
    figure: f64,
}

impl Scraper {
    /// Creates a scraper of `http://host:port`, `host:port`, or a URL with a path of its own.
    ///
    /// # Errors
    ///
    /// The address has another form.
    pub(super) fn new(address: &str) -> Result<Self, Failure> {
        let base = base_url(address)?;
        let has_path = base
            .split_once("://")
            .is_some_and(|(_, rest)| rest.contains('/'));
        let url = if has_path {
            base.clone()
        } else {
            format!("{base}/metrics")
        };
        Ok(Self { url, address: base })
    }

    /// Returns the address of the process.
    pub(super) fn address(&self) -> &str {
        &self.address
    }

    /// Reads the current figures.
    ///
    /// # Errors
    ///
    /// The request failed. The message names the address.
    pub(super) fn scrape(&self) -> Result<Snapshot, String> {
        let by = Instant::now() + TIMEOUT;
        let answer = http_client::get(&self.url, &[], TIMEOUT).and_then(|it| match it.status {
            StatusCode::OK => it.text(MAX_BYTES, by),
            status => Err(format!("the answer is {status}")),
        });
        let text = answer.map_err(|error| format!("cannot read {}: {error}", self.url))?;
        Snapshot::parse(&text).map_err(|error| format!("{}: {error}", self.url))
    }
}

impl Snapshot {
    /// Parses figures in Prometheus's text format.
    ///
    /// # Errors
    ///
    /// The text is not from this program.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let snapshot = Self {
            taken: Instant::now(),
            samples: text.lines().filter_map(Sample::parse).collect(),
        };
        if snapshot.sum("baler_build_info").is_none() {
            return Err("these are no metrics of baler".to_owned());
        }
        Ok(snapshot)
    }

    /// Returns the series of a metric, each with the values of these labels and its figure.
    pub(super) fn series<const N: usize>(
        &self,
        metric: &str,
        labels: [&str; N],
    ) -> Vec<([String; N], f64)> {
        let samples = self.samples.iter().filter(|it| it.metric == metric);
        let series = samples.map(|sample| {
            let label = |name| sample.labels.iter().find(|(label, _)| label == name);
            let value = |name| label(name).map_or_else(String::new, |(_, value)| value.clone());
            (labels.map(value), sample.figure)
        });
        series.collect()
    }

    /// Returns the sum over all series of a metric, or `None` if it has no series.
    pub(super) fn sum(&self, metric: &str) -> Option<f64> {
        let values = self.series(metric, []).into_iter().map(|(_, value)| value);
        values.reduce(|sum, value| sum + value)
    }

    /// Returns the sums of a metric by the values of a label.
    pub(super) fn by(&self, metric: &str, label: &str) -> BTreeMap<String, f64> {
        let mut sums = BTreeMap::new();
        for ([name], value) in self.series(metric, [label]) {
            *sums.entry(name).or_default() += value;
        }
        sums
    }

    /// Returns the labels of those series of a metric that are not 0.
    pub(super) fn set<const N: usize>(&self, metric: &str, labels: [&str; N]) -> Vec<[String; N]> {
        let series = self.series(metric, labels).into_iter();
        let set = series.filter(|(_, value)| *value != 0.0);
        set.map(|(labels, _)| labels).collect()
    }
}

impl Sample {
    /// Parses a line such as `metric{label="value"} 2`. Returns `None` for other lines.
    fn parse(line: &str) -> Option<Self> {
        let (metric, mut rest) = line.split_at_checked(line.find(['{', ' '])?)?;
        let mut labels = Vec::new();
        while let Some((name, quoted)) = rest
            .strip_prefix(['{', ','])
            .and_then(|it| it.split_once("=\""))
        {
            let mut value = String::new();
            let mut letters = quoted.chars();
            loop {
                value.push(match letters.next()? {
                    '"' => break,
                    '\\' => match letters.next()? {
                        'n' => '\n',
                        escaped => escaped,
                    },
                    letter => letter,
                });
            }
            labels.push((name.to_owned(), value));
            rest = letters.as_str();
        }
        let figure = rest
            .trim_start_matches('}')
            .split_ascii_whitespace()
            .next()?;
        Some(Self {
            metric: metric.to_owned(),
            labels,
            figure: figure.parse().ok()?,
        })
    }
}
