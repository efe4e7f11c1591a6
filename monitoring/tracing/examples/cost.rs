//! Prints the cost of a span in nanoseconds, beside the registry alone and a bare probe.
//!
//! `cost SPANS CASE` runs one case only, so that `perf stat -e instructions:u` can count it.

#![expect(clippy::print_stdout, reason = "the output of the program")]

use std::error::Error;
use std::time::{Duration, Instant};

use baler_connector_null::{NullConfig, NullWriter};
use baler_monitoring::{Controller, probe};
use tracing::{Dispatch, dispatcher, info_span};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::registry;

const CASES: [(&str, fn()); 6] = [
    ("registry", span),
    ("registry, nested", nested_span),
    ("layer", span),
    ("layer, nested", nested_span),
    ("layer, a field", span_with_field),
    ("probe", probed),
];

#[probe]
fn probed() {
    std::hint::black_box(());
}

fn span() {
    info_span!("span").in_scope(|| std::hint::black_box(()));
}

fn nested_span() {
    info_span!("inner").in_scope(|| std::hint::black_box(()));
}

fn span_with_field() {
    info_span!("span", number = 1).in_scope(|| std::hint::black_box(()));
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let spans = arguments.next().and_then(|it| it.parse().ok());
    let spans = spans.unwrap_or(100_000_u32);
    let only = arguments.next();
    for (name, call) in CASES {
        if only.as_deref().is_none_or(|only| only == name) {
            println!("{name:<18}{:8.1} ns", cost(name, call, spans)?);
        }
    }
    Ok(())
}

/// The calls of a round: few enough for their records to stay in the queue.
const ROUND: u32 = 2_000;

/// Returns the nanoseconds of a call: the median of all rounds. Between two rounds the queues empty.
fn cost(name: &str, call: fn(), calls: u32) -> Result<f64, Box<dyn Error>> {
    let writer = NullWriter::new(NullConfig::default());
    let controller = Controller::builder(Box::new(writer)).start()?;
    controller.install();
    let subscriber = if name.starts_with("layer") {
        Dispatch::new(registry().with(baler_tracing::layer(controller.clone())))
    } else {
        Dispatch::new(registry())
    };
    let _default = dispatcher::set_default(&subscriber);
    let outer = name
        .ends_with("nested")
        .then(|| info_span!("outer").entered());
    let mut rounds = Vec::new();
    for _ in 0..calls.div_ceil(ROUND) {
        let began = Instant::now();
        (0..ROUND).for_each(|_| call());
        rounds.push(began.elapsed().as_secs_f64() * 1e9 / f64::from(ROUND));
        controller.flush(Duration::from_secs(10))?;
    }
    drop(outer);
    let stats = controller.shutdown(Duration::from_secs(10)).stats;
    assert_eq!(stats.emitted, stats.delivered, "{stats:?}");
    rounds.sort_by(f64::total_cmp);
    let median = rounds.get(rounds.len() / 2);
    Ok(*median.ok_or("there must be a call")?)
}
