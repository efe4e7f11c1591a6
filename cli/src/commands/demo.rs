//! `baler demo`: a shop, its records over TCP on loopback, and a consumer, in one process.
//!
//! shop's threads -> probes -> controller -> tcp ~~ 127.0.0.1 ~~ tcp -> source -> [`analysis`]

mod analysis;
mod shop;
#[cfg(test)]
mod tests;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

use baler_analysis::filters::Tee;
use baler_analysis::traces::TraceAnalysis;
use baler_analysis::{AnalysisError, Source, SourceReport, Stop};
use baler_monitoring::Controller;
use serde_json::{Value, json};
use shop::Shop;

use crate::args::DemoArgs;
use crate::endpoint::{self, OpenReader};
use crate::exit::{Code, Failure};
use crate::observe::Observation;
use crate::output::figures::{operations_table, short_operation};
use crate::output::{self, Progress};
use crate::random::Random;
use crate::shipping::{Report, Shipper};
use crate::shutdown::Shutdown;

/// How often progress is shown.
const TICK: Duration = Duration::from_millis(100);

/// Runs the shop for a while and shows the analysis of its records.
pub(super) fn run(args: &DemoArgs, quiet: bool, shutdown: &Shutdown) -> Result<Code, Failure> {
    let OpenReader {
        reader,
        listens_on,
        endpoint,
        ..
    } = endpoint::open_reader("tcp://127.0.0.1:0", false)?;
    let address =
        listens_on.ok_or_else(|| Failure::new(Code::Internal, "the tcp reader listens nowhere"))?;
    let observation = Observation::start(&args.observe, "demo", shutdown, quiet)?;
    observation.observed.endpoint("source", &endpoint);
    let mut source = Source::new(reader);
    observation.observed.receives(source.watch());
    let shop = Shop::new();
    let over = AtomicBool::new(false);
    let received = AtomicU64::new(0);
    let (stages, traces, kieker_bytes) = analysis::stages();
    let outcome = thread::scope(|scope| {
        let consumer = consume(scope, source, stages, &over, &received, shutdown)?;
        // An error must not return early here: `over` ends the consumer, and the scope waits for
        // it.
        let report = load(args, address, &shop, &received, &observation);
        over.store(true, Ordering::Release);
        let consumed = consumer.join().map_err(Failure::panicked)?;
        Ok::<_, Failure>((report?, consumed?))
    });
    let (report, source) = outcome?;
    let shown = observation.finish();
    if let Some(path) = &args.report {
        super::analyze::files::report(&traces, path, "Traces of the demo's shop")?;
    }
    // The names are part of the program's interface.
    let more = json!({
        "visits": shop.visits(),
        "received": source.records,
        "adds_up": report.adds_up() && source.records == report.stats().delivered,
        "kieker_bytes": kieker_bytes.load(Ordering::Relaxed),
        "operations": traces.read(|it| it.document(false).operations().collect::<Value>()),
        "call_tree": traces.read(call_tree),
    });
    let mut document = report.document.clone();
    output::extend(&mut document, &more);
    output::result(args.format, &document, || text(document.clone()))?;
    shown?;
    let code = report.conclude()?;
    if source.records != report.stats().delivered {
        let message = format!(
            "{} records were delivered, but {} received: a fault of baler, please report it",
            report.stats().delivered,
            source.records
        );
        return Err(Failure::new(Code::Internal, message));
    }
    Ok(code)
}

/// Returns the calls of the trace with the most calls, in order of entry.
fn call_tree(analysis: &TraceAnalysis) -> Option<Value> {
    let classes = analysis.profile().classes().into_iter();
    let trace = &classes
        .max_by_key(|class| class.example.calls.len())?
        .example;
    let calls = trace.calls.iter().zip(trace.callers());
    let calls = calls.map(|(call, (_, self_ns))| {
        let operation = analysis.operations().get(call.operation);
        json!({
            "operation": operation.map_or("", |operation| operation.signature),
            "eoi": call.eoi,
            "ess": call.ess,
            "total_ns": call.nanos(),
            "self_ns": self_ns,
        })
    });
    Some(json!({ "trace_id": trace.id, "executions": calls.collect::<Vec<_>>() }))
}

/// Formats the figures as text.
fn text(mut document: Value) -> String {
    let operations = output::take(&mut document, "operations");
    let tree = &output::take(&mut document, "call_tree");
    let mut text = output::two_columns(&output::figures_of(&document));
    text.push('\n');
    text.push_str(&operations_table(
        operations.as_array().into_iter().flatten(),
    ));
    if tree.is_null() {
        return text;
    }
    text.push_str(&format!("\n  call tree of trace {}\n", tree["trace_id"]));
    let lines = output::items(tree, "executions").map(|call| {
        let depth = output::count_of(call, "ess").min(20);
        let indent: String = (0..depth).map(|_| "  ").collect();
        let name = short_operation(output::text_of(call, "operation"));
        let time = |name: &str| output::span(output::number_of(call, name));
        vec![format!("{indent}{name}"), time("total_ns"), time("self_ns")]
    });
    text.push_str(&output::table(
        &["operation", "total", "self"],
        &[1, 2],
        lines,
    ));
    text
}

/// Runs the shop's customers until the time is over. Returns when all records are delivered.
fn load(
    args: &DemoArgs,
    address: SocketAddr,
    shop: &Shop,
    received: &AtomicU64,
    observation: &Observation,
) -> Result<Report, Failure> {
    let shutdown = &observation.shutdown;
    let writer = endpoint::writer(&format!("tcp://{address}"))?;
    let shipper = Shipper::start(&args.shipping, writer, true, observation)?;
    let before = shipper.controller.install();
    let started = Instant::now();
    let end = started + Duration::from_secs(args.seconds);
    let progress = Progress::bar(args.seconds * 1_000, observation.quiet);
    let served = thread::scope(|scope| {
        for number in 0..args.threads.get() {
            let shipper = &shipper;
            let serve = move || {
                let mut dice = Random::new(number as u64 + 1);
                while Instant::now() < end && !shipper.should_stop() {
                    shop.serve(&mut dice);
                }
            };
            let name = format!("baler-shop-{number}");
            thread::Builder::new()
                .name(name)
                .spawn_scoped(scope, serve)?;
        }
        while Instant::now() < end && !shutdown.wait_until((Instant::now() + TICK).min(end)) {
            let elapsed = started.elapsed().min(Duration::from_secs(args.seconds));
            let milliseconds = u64::try_from(elapsed.as_millis()).expect("a demo lasts an hour");
            progress.show(milliseconds, || {
                format!(
                    "{} visits, {} records emitted, {} received",
                    output::number(shop.visits().total()),
                    output::number(shipper.controller.stats().emitted),
                    output::number(received.load(Ordering::Relaxed)),
                )
            });
        }
        Ok::<_, std::io::Error>(())
    });
    progress.clear();
    let report = shipper.finish();
    if let Some(before) = before {
        Controller::install(&before);
    }
    served.map_err(Failure::thread)?;
    Ok(report)
}

/// Starts the consumer. It analyses records until the load is over and no records are left.
fn consume<'scope>(
    scope: &'scope Scope<'scope, '_>,
    mut source: Source,
    mut stages: Tee,
    over: &'scope AtomicBool,
    received: &'scope AtomicU64,
    shutdown: &'scope Shutdown,
) -> Result<ScopedJoinHandle<'scope, Result<SourceReport, AnalysisError>>, Failure> {
    let run = move || {
        // Here, delivered means settled: when the load is over, nothing is in flight.
        source.run(&mut stages, Stop::default(), |report| {
            received.store(report.records, Ordering::Relaxed);
            // After a panic of the load, nobody says that it is over.
            !over.load(Ordering::Acquire) && !shutdown.has_panicked()
        })?;
        source.close(shutdown.deadline())
    };
    thread::Builder::new()
        .name("baler-consumer".to_owned())
        .spawn_scoped(scope, run)
        .map_err(Failure::thread)
}
