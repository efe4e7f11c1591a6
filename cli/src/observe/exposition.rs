//! Values of metrics, gathered for one answer, as Prometheus's text format 0.0.4.

use std::time::Duration;

use prometheus::proto::{Counter, Gauge, LabelPair, Metric as Sample, MetricFamily, MetricType};
use prometheus::{Encoder as _, TextEncoder};

use super::metric::{self, Kind, Metric};

/// The content type of what [`Exposition::text`] makes.
pub(crate) const CONTENT_TYPE: &str = prometheus::TEXT_FORMAT;

/// Values of metrics, gathered for one answer.
#[derive(Debug, Default)]
pub(crate) struct Exposition {
    families: Vec<MetricFamily>,
}

impl Exposition {
    /// Adds a value; `labels` are the values of the metric's labels, in order.
    pub(crate) fn set(&mut self, metric: &Metric, labels: &[&str], value: impl Value) {
        let pairs = metric.labels.iter().zip(labels).map(|(name, value)| {
            let mut pair = LabelPair::default();
            pair.set_name((*name).to_owned());
            pair.set_value((*value).to_owned());
            pair
        });
        let mut sample = Sample::default();
        sample.set_label(pairs.collect());
        match metric.kind {
            Kind::Counter => {
                let mut counter = Counter::default();
                counter.set_value(value.float());
                sample.set_counter(counter);
            }
            Kind::Gauge => {
                let mut gauge = Gauge::default();
                gauge.set_value(value.float());
                sample.set_gauge(gauge);
            }
        }
        self.family(metric).mut_metric().push(sample);
    }

    fn family(&mut self, metric: &Metric) -> &mut MetricFamily {
        let known = self.families.iter();
        let at = known
            .take_while(|family| family.name() != metric.name)
            .count();
        if at == self.families.len() {
            let mut family = MetricFamily::default();
            family.set_name(metric.name.to_owned());
            family.set_help(metric.help.to_owned());
            family.set_field_type(match metric.kind {
                Kind::Counter => MetricType::COUNTER,
                Kind::Gauge => MetricType::GAUGE,
            });
            self.families.push(family);
        }
        // It was found, or appended just now.
        #[expect(clippy::indexing_slicing, reason = "`at` is the position of a family")]
        &mut self.families[at]
    }

    /// The values in text format, in the order of METRICS.md.
    pub(crate) fn text(mut self) -> String {
        let position = |family: &MetricFamily| {
            metric::ALL
                .iter()
                .position(|metric| metric.name == family.name())
        };
        self.families.sort_by_key(position);
        let mut text = Vec::new();
        // It fails for families without values, of which there are none, and a full sink.
        if let Err(error) = TextEncoder::new().encode(&self.families, &mut text) {
            tracing::error!(%error, "cannot write the metrics");
        }
        String::from_utf8_lossy(&text).into_owned()
    }
}

/// What a metric can be set to.
pub(crate) trait Value {
    /// The value as Prometheus has it.
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
mod tests {
    use super::*;

    #[test]
    fn values_of_a_metric_stand_together_and_labels_are_escaped() {
        let mut exposition = Exposition::default();
        exposition.set(&metric::LANE_LAG, &["0", "a\"b\\c\nd"], 3_usize);
        exposition.set(&metric::RECORDS_EMITTED, &[], 7_u64);
        exposition.set(&metric::LANE_LAG, &["1", "2"], 0_usize);
        assert_eq!(
            exposition.text(),
            "# HELP baler_records_emitted_total Records emitted, taken or not.\n\
             # TYPE baler_records_emitted_total counter\n\
             baler_records_emitted_total 7\n\
             # HELP baler_lane_lag_chunks Chunks of a lane that were written and not yet settled, \
             where the medium says.\n\
             # TYPE baler_lane_lag_chunks gauge\n\
             baler_lane_lag_chunks{worker=\"0\",lane=\"a\\\"b\\\\c\\nd\"} 3\n\
             baler_lane_lag_chunks{worker=\"1\",lane=\"2\"} 0\n"
        );
    }
}
