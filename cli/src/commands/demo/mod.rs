//! `baler demo`: a shop, its records over TCP on loopback, and a consumer, in one process.
//!
//! shop's threads -> probes -> controller -> tcp ~~ 127.0.0.1 ~~ tcp -> source -> [`Analysis`]

mod analysis;
mod shop;
mod summary;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

use analysis::{Analysis, Findings};
use baler_analysis::{AnalysisError, Source, SourceReport, Stop};
use baler_monitoring::Controller;
use shop::{Dice, Shop};
use summary::Document;

use crate::args::DemoArgs;
use crate::endpoint::{self, OpenReader};
use crate::exit::{Code, Failure};
use crate::observe::Observation;
use crate::output::{self, Progress};
use crate::shipping::Shipper;
use crate::shutdown::Shutdown;

/// How often progress is shown.
const TICK: Duration = Duration::from_millis(100);

/// Runs the shop for a while and shows what its records tell.
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
    observation.observed().endpoint("source", &endpoint);
    let mut source = Source::new(reader);
    observation.receives(&mut source);
    let shop = Shop::new();
    let over = AtomicBool::new(false);
    let received = AtomicU64::new(0);
    let outcome = thread::scope(|scope| {
        let consumer = consume(scope, source, &over, &received, shutdown)?;
        // Whatever happens, the consumer ends, else the scope would wait for it for ever.
        let to = (address, &observation);
        let report = load(args, to, &shop, &received, quiet, shutdown);
        over.store(true, Ordering::Release);
        let consumed = consumer
            .join()
            .map_err(|_| Failure::new(Code::Internal, "the consumer panicked"))?;
        Ok::<_, Failure>((report?, consumed?))
    });
    let (report, (source, findings)) = outcome?;
    let shown = observation.finish();
    if let Some(path) = &args.report {
        super::analyze::files::report(&findings.traces, path, "Traces of the demo's shop")?;
    }
    let document = Document::new(&report, &source, &findings, shop.visits());
    output::result(args.format, &document, || document.text())?;
    shown?;
    let code = report.conclude()?;
    if source.records != report.delivered {
        let message = format!(
            "{} records were delivered, but {} received: a fault of baler, please report it",
            report.delivered, source.records
        );
        return Err(Failure::new(Code::Internal, message));
    }
    Ok(code)
}

/// Lets customers into the shop until the time is over; returns when all records are delivered.
fn load(
    args: &DemoArgs,
    (address, observation): (SocketAddr, &Observation),
    shop: &Shop,
    received: &AtomicU64,
    quiet: bool,
    shutdown: &Shutdown,
) -> Result<crate::shipping::Report, Failure> {
    let to = format!("tcp://{address}");
    let to = endpoint::with_topic(&to, args.shipping.create_topic.as_deref());
    let writer = endpoint::writer(&to)?;
    let shipper = Shipper::start(&args.shipping, writer, true, (shutdown, observation, quiet))?;
    let before = shipper.controller().install();
    let started = Instant::now();
    let end = started + Duration::from_secs(args.seconds);
    let milliseconds = args.seconds.saturating_mul(1_000);
    let progress = Progress::bar(milliseconds, quiet);
    let served = thread::scope(|scope| {
        for number in 0..args.threads.get() {
            let seed = u64::try_from(number).unwrap_or(0).saturating_add(1);
            let shipper = &shipper;
            let serve = move || {
                let mut dice = Dice::new(seed);
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
            let elapsed = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
            progress.show(elapsed.min(milliseconds), || {
                format!(
                    "{} visits, {} records emitted, {} received",
                    output::number(shop.visits().total()),
                    output::number(shipper.controller().stats().emitted),
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

/// What the consumer's thread yields.
type Consumed = Result<(SourceReport, Findings), AnalysisError>;

/// Starts the consumer: it analyses what arrives until the load is over and nothing is left.
fn consume<'scope>(
    scope: &'scope Scope<'scope, '_>,
    mut source: Source,
    over: &'scope AtomicBool,
    received: &'scope AtomicU64,
    shutdown: &'scope Shutdown,
) -> Result<ScopedJoinHandle<'scope, Consumed>, Failure> {
    let run = move || {
        let (mut analysis, findings) = Analysis::new();
        // Delivered means settled here: when the load is over, nothing is on its way any more.
        source.run(&mut analysis, Stop::default(), |report| {
            received.store(report.records, Ordering::Relaxed);
            !over.load(Ordering::Acquire)
        })?;
        let report = source.close(shutdown.deadline())?;
        Ok((report, findings.into_findings()))
    };
    thread::Builder::new()
        .name("baler-consumer".to_owned())
        .spawn_scoped(scope, run)
        .map_err(Failure::thread)
}
