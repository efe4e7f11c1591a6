//! Crates that keep a distribution of durations instead of records.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use baler_rig::monitored;
use baler_rig::overhead::{End, Outer, Running, Variant, cycles};
use hdrhistogram::Histogram;
use metrics::{Counter, Gauge, Key, KeyName, Metadata, Recorder, SharedString, Unit, histogram};
use metrics_util::registry::{AtomicStorage, Registry};

use super::counter;
use crate::failure::Failure;

pub(super) const VARIANTS: &[Variant] = &[
    Variant::new(
        "metrics",
        "two cycle counter reads and a histogram of the crate metrics through a handle, \
                emptied every 1 ms",
        |_| Metrics::start(through_handle),
    ),
    Variant::new(
        "metrics-macro",
        "as metrics, but the histogram is looked up by the macro in each call",
        |_| Metrics::start(through_macro),
    ),
    Variant::new(
        "hdrhistogram",
        "two cycle counter reads and a hdrhistogram of three digits for each thread",
        |_| Ok(Box::new(Hdr)),
    ),
];

/// How often the histograms are emptied.
const EVERY: Duration = Duration::from_millis(1);

const NAME: &str = "operation";

static HANDLE: LazyLock<metrics::Histogram> = LazyLock::new(|| histogram!(NAME));

monitored! {
    fn through_handle {
        let begin = cycles();
    } after {
        HANDLE.record(duration(begin));
    }
}

monitored! {
    fn through_macro {
        let begin = cycles();
    } after {
        histogram!(NAME).record(duration(begin));
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

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> metrics::Histogram {
        let histogram = |bucket: &Arc<_>| metrics::Histogram::from_arc(Arc::clone(bucket));
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
    outer: Outer,
    stop: Arc<AtomicBool>,
    emptying: JoinHandle<()>,
}

impl Metrics {
    fn start(outer: Outer) -> Result<Box<dyn Running>, Failure> {
        let kept = Kept(Arc::new(Registry::atomic()));
        metrics::set_global_recorder(kept.clone()).map_err(Failure::cannot("set a recorder"))?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let emptying = thread::spawn(move || {
            while !stopped.load(Ordering::Acquire) {
                kept.empty();
                thread::park_timeout(EVERY);
            }
            kept.empty();
        });
        Ok(Box::new(Self {
            outer,
            stop,
            emptying,
        }))
    }
}

impl Running for Metrics {
    fn outer(&self) -> Outer {
        self.outer
    }

    fn finish(self: Box<Self>, calls: u64) -> Result<End, Failure> {
        self.stop.store(true, Ordering::Release);
        self.emptying.thread().unpark();
        let ended = self.emptying.join();
        ended.map_err(|_| Failure::new("the emptying thread panicked"))?;
        counter::end(calls)
    }
}

thread_local! {
    static HISTOGRAM: RefCell<Owned> = RefCell::new(Owned(
        // Up to an hour at 5 GHz; only wrong bounds are an error.
        Histogram::new_with_bounds(1, 18_000_000_000_000, 3).ok(),
    ));
}

/// A thread's histogram; at its end it tells how many values it has.
struct Owned(Option<Histogram<u64>>);

impl Drop for Owned {
    fn drop(&mut self) {
        counter::arrived(self.0.as_ref().map_or(0, Histogram::len));
    }
}

monitored! {
    fn into_hdr {
        let begin = cycles();
    } after {
        let ticks = cycles().wrapping_sub(begin);
        HISTOGRAM.with_borrow_mut(|owned| {
            if let Some(histogram) = &mut owned.0 {
                histogram.saturating_record(ticks);
            }
        });
    }
}

struct Hdr;

impl Running for Hdr {
    fn outer(&self) -> Outer {
        into_hdr
    }

    fn finish(self: Box<Self>, calls: u64) -> Result<End, Failure> {
        // Where the calls were made by this thread.
        drop(HISTOGRAM.replace(Owned(None)));
        counter::end(calls)
    }
}
