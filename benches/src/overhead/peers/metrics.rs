//! The crate `metrics`: a distribution of durations instead of records.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use ::metrics::{Counter, Gauge, Key, KeyName, Metadata, Recorder, SharedString, Unit, histogram};
use baler_rig::monitored;
use baler_rig::overhead::{End, Outer, Running, Variant, cycles};
use metrics_util::registry::{AtomicStorage, Registry};

use super::counter;
use crate::Failure;

pub(super) const VARIANTS: &[Variant] = &[Variant::new(
    "metrics",
    "two cycle counter reads and a histogram of the crate metrics through a handle",
    |_| Metrics::start(),
)
.with_settings("emptied each 1 ms")];

/// How often the histograms are emptied.
const EVERY: Duration = Duration::from_millis(1);

const NAME: &str = "operation";

static HANDLE: LazyLock<::metrics::Histogram> = LazyLock::new(|| histogram!(NAME));

monitored! {
    fn through_handle {
        let begin = cycles();
    } after {
        HANDLE.record(duration(begin));
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "what a user of metrics does with a duration"
)]
fn duration(begin: u64) -> f64 {
    cycles().wrapping_sub(begin) as f64
}

/// A registry as exporters have it, of metrics-util.
#[derive(Clone)]
struct Kept(Arc<Registry<Key, AtomicStorage>>);

impl Recorder for Kept {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        let counter = |counter: &Arc<_>| Counter::from_arc(Arc::clone(counter));
        self.0.get_or_create_counter(key, counter)
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        let gauge = |gauge: &Arc<_>| Gauge::from_arc(Arc::clone(gauge));
        self.0.get_or_create_gauge(key, gauge)
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> ::metrics::Histogram {
        let histogram = |bucket: &Arc<_>| ::metrics::Histogram::from_arc(Arc::clone(bucket));
        self.0.get_or_create_histogram(key, histogram)
    }
}

impl Kept {
    fn empty(&self) {
        self.0.visit_histograms(|_, bucket| {
            bucket.clear_with(|values| {
                counter::arrived(u64::try_from(values.len()).unwrap_or(u64::MAX));
            });
        });
    }
}

struct Metrics {
    stop: Arc<AtomicBool>,
    emptying: JoinHandle<()>,
}

impl Metrics {
    fn start() -> Result<Box<dyn Running>, Failure> {
        let kept = Kept(Arc::new(Registry::atomic()));
        ::metrics::set_global_recorder(kept.clone()).map_err(Failure::cannot("set a recorder"))?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let emptying = thread::spawn(move || {
            while !stopped.load(Ordering::Acquire) {
                kept.empty();
                thread::park_timeout(EVERY);
            }
            kept.empty();
        });
        Ok(Box::new(Self { stop, emptying }))
    }
}

impl Running for Metrics {
    fn outer(&self) -> Outer {
        through_handle
    }

    fn finish(self: Box<Self>, calls: u64) -> Result<End, Failure> {
        self.stop.store(true, Ordering::Release);
        self.emptying.thread().unpark();
        let ended = self.emptying.join();
        ended.map_err(|_| Failure::new("the emptying thread panicked"))?;
        counter::end(calls)
    }
}
