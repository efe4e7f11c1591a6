//! Values of metrics, gathered for one answer, as Prometheus's text format 0.0.4.
//!
//! <https://prometheus.io/docs/instrumenting/exposition_formats/#text-format-details>

use std::collections::BTreeMap;
use std::time::Duration;

use baler_analysis::sinks::by_reason;
use baler_common::container::{LossReason, Losses};

use super::metric::{self, Kind, Metric};

/// The content type of the text that [`Exposition::text`] returns.
pub(crate) const CONTENT_TYPE: &str = "text/plain; version=0.0.4";

/// Values of metrics, gathered for one answer.
#[derive(Debug, Default)]
pub(crate) struct Exposition {
    /// The lines of each metric, by its name.
    lines: BTreeMap<&'static str, String>,
}

impl Exposition {
    /// Adds a value; `labels` are the values of the metric's labels, in order.
    pub(crate) fn set(&mut self, metric: &Metric, labels: &[&str], value: impl Value) {
        let pairs = metric.labels.iter().zip(labels).map(|(name, value)| {
            let value = value.replace('\\', "\\\\");
            let value = value.replace('"', "\\\"").replace('\n', "\\n");
            format!("{name}=\"{value}\"")
        });
        let pairs: Vec<_> = pairs.collect();
        let pairs = match pairs.is_empty() {
            true => String::new(),
            false => format!("{{{}}}", pairs.join(",")),
        };
        let line = format!("{}{pairs} {}\n", metric.name, value.float());
        self.lines.entry(metric.name).or_default().push_str(&line);
    }

    /// Returns the values in text format, in the order of METRICS.md.
    pub(crate) fn text(&self) -> String {
        let families = metric::ALL.iter().filter_map(|metric| {
            let lines = self.lines.get(metric.name)?;
            let kind = match metric.kind {
                Kind::Counter => "counter",
                Kind::Gauge => "gauge",
            };
            let Metric { name, help, .. } = metric;
            Some(format!(
                "# HELP {name} {help}\n# TYPE {name} {kind}\n{lines}"
            ))
        });
        families.collect()
    }
}

/// Returns losses by reason, including reasons without a loss. A counter that appears with its
/// first loss would hide that loss from `increase`.
pub(super) fn every_reason(losses: &Losses) -> BTreeMap<String, u64> {
    let mut losses = by_reason(losses);
    for reason in LossReason::ALL {
        losses.entry(reason.name().to_owned()).or_default();
    }
    losses
}

/// A type for the values of metrics.
pub(crate) trait Value {
    /// Returns the value as Prometheus stores it.
    fn float(self) -> f64;
}

#[expect(
    clippy::cast_precision_loss,
    reason = "Prometheus has floats alone; they are exact up to 2^53"
)]
impl Value for u64 {
    fn float(self) -> f64 {
        self as f64
    }
}

#[expect(clippy::cast_precision_loss, reason = "as for u64")]
impl Value for usize {
    fn float(self) -> f64 {
        self as f64
    }
}

impl Value for bool {
    fn float(self) -> f64 {
        f64::from(u8::from(self))
    }
}

impl Value for Duration {
    fn float(self) -> f64 {
        self.as_secs_f64()
    }
}

#[cfg(test)]
mod tests;
