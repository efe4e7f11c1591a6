//! Reading the figures of a process over HTTP.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use prometheus_parse::{Sample, Scrape, Value};

use crate::exit::Failure;

/// How long an answer may take.
const TIMEOUT: Duration = Duration::from_secs(3);

/// The largest answer that is read: that of some ten thousand lanes.
const MAX_BYTES: u64 = 8 << 20;

/// Asks one process for its figures.
#[derive(Debug)]
pub(super) struct Scraper {
    agent: ureq::Agent,
    url: String,
    address: String,
}

/// What a process showed at one moment.
#[derive(Debug)]
pub(super) struct Snapshot {
    pub(super) taken: Instant,
    samples: Vec<Sample>,
}

impl Scraper {
    /// A scraper of `http://host:port`, `host:port`, or a URL with a path of its own.
    ///
    /// # Errors
    ///
    /// It is no such address.
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
        let config = ureq::Agent::config_builder()
            .timeout_global(Some(TIMEOUT))
            .build();
        Ok(Self {
            agent: ureq::Agent::new_with_config(config),
            url,
            address: base,
        })
    }

    /// The process's address.
    pub(super) fn address(&self) -> &str {
        &self.address
    }

    /// The figures of now.
    ///
    /// # Errors
    ///
    /// What went wrong, with the address.
    pub(super) fn scrape(&self) -> Result<Snapshot, String> {
        let failed = |error| format!("cannot read {}: {}", self.url, http_error(error));
        let mut response = self.agent.get(&self.url).call().map_err(failed)?;
        let body = response.body_mut().with_config().limit(MAX_BYTES);
        let text = body.read_to_string().map_err(failed)?;
        Snapshot::parse(&text).map_err(|error| format!("{}: {error}", self.url))
    }
}

/// What went wrong with a request, without the name of the kind of error.
pub(in crate::commands) fn http_error(error: ureq::Error) -> String {
    match error {
        ureq::Error::Io(error) => error.to_string(),
        error => error.to_string(),
    }
}

/// A URL without a slash at its end.
///
/// # Errors
///
/// The scheme is another than http, or there is no host.
pub(in crate::commands) fn base_url(address: &str) -> Result<String, Failure> {
    let base = match address.split_once("://") {
        Some(("http", _)) => address.to_owned(),
        Some((scheme, _)) => {
            return Err(Failure::configuration(format!(
                "{scheme}: is not how metrics are served; write http://host:port or host:port"
            )));
        }
        None => format!("http://{address}"),
    };
    let base = base.trim_end_matches('/').to_owned();
    if base.parse::<ureq::http::Uri>().is_err() || base == "http:" {
        return Err(Failure::configuration(format!(
            "`{address}` is no address; write http://host:port or host:port"
        )));
    }
    Ok(base)
}

impl Snapshot {
    /// The figures in a text of Prometheus's format.
    ///
    /// # Errors
    ///
    /// It is no such text, or not one of this program.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let lines = text.lines().map(|line| Ok(line.to_owned()));
        let scrape = Scrape::parse(lines).map_err(|error| error.to_string())?;
        let snapshot = Self {
            taken: Instant::now(),
            samples: scrape.samples,
        };
        if snapshot.sum("baler_build_info").is_none() {
            return Err("these are no metrics of baler".to_owned());
        }
        Ok(snapshot)
    }

    fn series<'a>(&'a self, metric: &'a str) -> impl Iterator<Item = (&'a Sample, f64)> {
        let samples = self.samples.iter();
        samples
            .filter(move |sample| sample.metric == metric)
            .filter_map(|sample| match sample.value {
                Value::Counter(value) | Value::Gauge(value) | Value::Untyped(value) => {
                    Some((sample, value))
                }
                Value::Histogram(_) | Value::Summary(_) => None,
            })
    }

    /// The sum over all series of a metric; nothing when there is none.
    pub(super) fn sum(&self, metric: &str) -> Option<f64> {
        let values = self.series(metric).map(|(_, value)| value);
        values.fold(None, |sum, value| Some(sum.unwrap_or(0.0) + value))
    }

    /// The sums of a metric by the values of a label.
    pub(super) fn by(&self, metric: &str, label: &str) -> BTreeMap<String, f64> {
        let mut sums = BTreeMap::new();
        for (sample, value) in self.series(metric) {
            if let Some(name) = sample.labels.get(label) {
                *sums.entry(name.to_owned()).or_default() += value;
            }
        }
        sums
    }

    /// The values of labels of those series of a metric that are not 0.
    pub(super) fn labels<const N: usize>(
        &self,
        metric: &str,
        labels: [&str; N],
    ) -> Vec<[String; N]> {
        let series = self.series(metric).filter(|(_, value)| *value != 0.0);
        series
            .map(|(sample, _)| {
                labels.map(|label| sample.labels.get(label).unwrap_or("").to_owned())
            })
            .collect()
    }

    /// The series of a metric with the values of two labels.
    pub(super) fn pairs(&self, metric: &str, labels: [&str; 2]) -> Vec<([String; 2], f64)> {
        let series = self.series(metric);
        series
            .map(|(sample, value)| {
                let names = labels.map(|label| sample.labels.get(label).unwrap_or("").to_owned());
                (names, value)
            })
            .collect()
    }
}
