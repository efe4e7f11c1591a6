//! A producer's process: makes records as it is told, and tells what becomes of them.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use baler_spool::SpoolWatch;

use super::event::Event;
use super::numbered::{Numbered, Stream};
use super::orders::{self, Order};
use super::poison;
use super::recording::{EventPipe, PoisonQueue, RecordingWriter};
use super::report::ProducerReport;
use crate::args::VerifyProducerArgs;
use crate::endpoint;
use crate::exit::{Code, Failure};
use crate::observe::Observation;
use crate::shipping::Shipper;
use crate::shutdown::Shutdown;

/// So many records go without a look at the clock.
const BURST: u64 = 32;

/// How long foreign bytes may take to be confirmed at the end, and what is on disk to be sent on.
const LAST_WORDS: Duration = Duration::from_secs(30);

/// So many records of one thread, spread over so long.
#[derive(Debug, Clone, Copy)]
struct Share {
    records: u64,
    over: Duration,
}

/// Makes records until it is told to finish, or to end.
pub(in crate::commands) fn run(
    args: &VerifyProducerArgs,
    shutdown: &Shutdown,
) -> Result<Code, Failure> {
    let events = EventPipe::stdout().map_err(|error| Failure::output("standard output", &error))?;
    let poison = PoisonQueue::default();
    ignore_full_files()?;
    let mut writer = endpoint::wrap(endpoint::writer(&args.to)?, &args.spool);
    let spool = writer.spool.clone();
    writer.writer = Box::new(RecordingWriter::new(
        writer.writer,
        args.seed,
        events.clone(),
        poison.clone(),
    ));
    let observation = Observation::start(&args.observe, "verify", shutdown, true)?;
    let shipper = Shipper::start(
        &args.shipping,
        writer,
        false,
        (shutdown, &observation, true),
    )?;
    events.tell(&Event::Ready);

    let (shares, receivers): (Vec<Sender<Share>>, Vec<Receiver<Share>>) =
        (0..args.threads).map(|_| channel()).unzip();
    follow_orders(args.seed, shares, poison.clone())?;
    let issued = emit_all(args, receivers, &shipper, shutdown)?;
    let by = Instant::now() + LAST_WORDS;
    while !poison.is_done() && Instant::now() < by && !shutdown.is_requested() {
        // It goes with the confirmations that somebody asks for; nobody is told of the last one.
        shipper.flush().ok();
        shutdown.wait_until(Instant::now() + Duration::from_millis(5));
    }
    let waiting = || {
        let status = spool.as_ref().map(SpoolWatch::status);
        status.map_or(0, |status| status.stats.waiting_chunks)
    };
    // A chunk that is still on its way may end on disk.
    shipper.flush().ok();
    // What is on disk goes before the end, if the medium is there.
    while waiting() > 0 && Instant::now() < by && !shutdown.is_requested() {
        shutdown.wait_until(Instant::now() + Duration::from_millis(5));
    }
    let waiting_chunks = waiting();
    let report = shipper.finish();
    let told = serde_json::to_value(&report).unwrap_or_default();
    let number = |name: &str| told.get(name).and_then(serde_json::Value::as_u64);
    let report = ProducerReport {
        issued,
        emitted: report.emitted,
        delivered: report.delivered,
        spooled: report.spooled,
        dropped: report.dropped,
        retries: number("retries").unwrap_or(0),
        reconnects: number("reconnects").unwrap_or(0),
        waiting_chunks,
    };
    let json = serde_json::to_string(&report)
        .map_err(|error| Failure::output("a report", &error.into()))?;
    events.tell(&Event::Report { json });
    observation.finish()?;
    Ok(Code::Done)
}

/// A write beyond the limit of a file's length raises a signal that would end the process; ignored,
/// the write fails, as on a full disk.
fn ignore_full_files() -> Result<(), Failure> {
    let flag = Arc::default();
    signal_hook::flag::register(signal_hook::consts::SIGXFSZ, flag)
        .map(drop)
        .map_err(|error| Failure::new(Code::Internal, format!("cannot handle signals: {error}")))
}

/// Passes orders on to the threads.
fn follow_orders(
    seed: u64,
    shares: Vec<Sender<Share>>,
    poison: PoisonQueue,
) -> Result<(), Failure> {
    let mut shares = Some(shares);
    let follow = move |order| match order {
        Order::Emit { records, over } => {
            let threads = shares.iter().flatten();
            let count = u64::try_from(threads.clone().count().max(1)).unwrap_or(1);
            for (thread, share) in (0..count).zip(threads) {
                // What does not divide goes to the first ones.
                let records = records / count + u64::from(thread < records % count);
                share.send(Share { records, over }).ok();
            }
        }
        Order::Poison { first, count } => {
            for number in first..first.saturating_add(count) {
                poison.push(poison::bytes(seed, number));
            }
        }
        Order::Finish => shares = None,
        Order::LimitFiles { bytes } => orders::limit_files(bytes),
        Order::Hold | Order::Release | Order::Slow { .. } => {}
    };
    orders::listen(follow)
        .map_err(|error| Failure::new(Code::Internal, format!("cannot start a thread: {error}")))
}

/// Runs the threads to their end; how many records they made.
fn emit_all(
    args: &VerifyProducerArgs,
    receivers: Vec<Receiver<Share>>,
    shipper: &Shipper,
    shutdown: &Shutdown,
) -> Result<u64, Failure> {
    let total = Mutex::new(0_u64);
    thread::scope(|scope| {
        for (thread, shares) in (0..args.threads).zip(receivers) {
            let stream = Stream {
                producer: args.producer,
                life: args.life,
                thread,
            };
            let total = &total;
            let work = move || {
                let issued = emit(args.seed, stream, &shares, shipper, shutdown);
                let mut total = total.lock().unwrap_or_else(PoisonError::into_inner);
                *total = total.saturating_add(issued);
            };
            let name = format!("baler-emit-{thread}");
            thread::Builder::new()
                .name(name)
                .spawn_scoped(scope, work)?;
        }
        Ok(())
    })
    .map_err(|error: std::io::Error| {
        Failure::new(Code::Internal, format!("cannot start a thread: {error}"))
    })?;
    Ok(total.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// Makes the records of one thread; how many.
fn emit(
    seed: u64,
    stream: Stream,
    shares: &Receiver<Share>,
    shipper: &Shipper,
    shutdown: &Shutdown,
) -> u64 {
    let mut number = 0_u64;
    loop {
        if shipper.should_stop() {
            return number;
        }
        let share = match shares.recv_timeout(Duration::from_millis(20)) {
            Ok(share) => share,
            Err(std::sync::mpsc::RecvTimeoutError::Timeout) => continue,
            Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => return number,
        };
        let start = Instant::now();
        for at in 0..share.records {
            if at % BURST == 0 {
                let due = start + due(share, at);
                if due > Instant::now() && shutdown.wait_until(due) {
                    return number;
                }
            }
            if shipper.should_stop() {
                return number;
            }
            // A record that is not taken is counted by the controller, with its reason.
            shipper
                .controller()
                .emit(&Numbered::make(seed, stream, number));
            number = number.saturating_add(1);
        }
    }
}

/// When a record of a share is due, after its beginning.
fn due(share: Share, at: u64) -> Duration {
    let nanos = share.over.as_nanos().saturating_mul(u128::from(at));
    let nanos = nanos / u128::from(share.records.max(1));
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}
