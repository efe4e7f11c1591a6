//! A producer's process: makes records on order, and reports the fate of their chunks.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use baler_connector_file::spool::SpoolWatch;

use super::messages::{Event, Order, follow_orders, tell};
use super::records::{Numbered, Stream, foreign_bytes};
use super::writer::{PoisonQueue, RecordingWriter};
use crate::args::VerifyProducerArgs;
use crate::endpoint;
use crate::exit::{Code, Failure};
use crate::observe::Observation;
use crate::shipping::Shipper;
use crate::shutdown::Shutdown;

/// The number of records that are made between two looks at the clock.
const BURST: u64 = 32;

/// How often to check for an end.
const TICK: Duration = Duration::from_millis(20);

/// How long the end waits until foreign bytes are confirmed and spooled chunks are sent.
const LAST_WORDS: Duration = Duration::from_secs(30);

/// The number of records that a thread is to make, and the time to spread them over.
struct Share {
    records: u64,
    over: Duration,
}

/// Makes records until an order to finish or a signal comes.
pub(in crate::commands) fn run(
    args: &VerifyProducerArgs,
    shutdown: &Shutdown,
) -> Result<Code, Failure> {
    let poison = PoisonQueue::default();
    let mut writer = endpoint::spooled_writer(&args.to, &args.spool)?;
    let spool = writer.spool.clone();
    writer.writer = Box::new(RecordingWriter::new(
        writer.writer,
        args.seed,
        poison.clone(),
    ));
    let observation = Observation::start(&args.observe, "verify", shutdown, true)?;
    let shipper = Shipper::start(&args.shipping, writer, false, &observation)?;
    tell(&Event::Ready);

    let (shares, receivers): (Vec<Sender<Share>>, Vec<Receiver<Share>>) =
        (0..args.threads).map(|_| channel()).unzip();
    apply_orders(args.seed, shares, poison.clone())?;
    let issued = emit_all(args, receivers, &shipper, shutdown)?;

    let by = Instant::now() + LAST_WORDS;
    let waiting_chunks = || {
        let status = spool.as_ref().map(SpoolWatch::status);
        status.map_or(0, |status| status.stats.waiting_chunks)
    };
    loop {
        // A flush makes the medium confirm, and foreign bytes are confirmed along with chunks.
        shipper.flush().ok();
        let is_done = poison.is_done() && waiting_chunks() == 0;
        if is_done || Instant::now() >= by || shutdown.wait_until(Instant::now() + TICK) {
            break;
        }
    }
    let report = shipper.finish();
    let account = serde_json::from_value(report.document)
        .map_err(|error| Failure::output("a report", &error.into()))?;
    tell(&Event::Produced { issued, account });
    observation.finish()?;
    Ok(Code::Done)
}

/// Limits the length of the files that this process writes; 0 is no limit.
fn limit_files(bytes: u64) {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    let maximum = getrlimit(Resource::Fsize).maximum;
    let current = if bytes == 0 { maximum } else { Some(bytes) };
    // If the system refuses the limit, the disk does not become full, and the oracle needs no
    // fault.
    setrlimit(Resource::Fsize, Rlimit { current, maximum }).ok();
}

/// Follows orders, and passes shares of records to the threads.
fn apply_orders(seed: u64, shares: Vec<Sender<Share>>, poison: PoisonQueue) -> Result<(), Failure> {
    let mut shares = Some(shares);
    follow_orders(move |order| match order {
        Order::Emit { records, over } => {
            let threads = shares
                .as_ref()
                .expect("no order comes after the one to finish");
            let count = threads.len() as u64;
            for (thread, sender) in (0..count).zip(threads) {
                let records = records / count + u64::from(thread < records % count);
                sender.send(Share { records, over }).ok();
            }
        }
        Order::Poison { first, count } => {
            (first..first + count).for_each(|number| poison.push(foreign_bytes(seed, number)));
        }
        Order::Finish => shares = None,
        Order::LimitFiles { bytes } => limit_files(bytes),
        Order::Hold | Order::Slow { .. } => {}
    })
}

/// Runs the threads to their end. Returns how many records they made.
fn emit_all(
    args: &VerifyProducerArgs,
    receivers: Vec<Receiver<Share>>,
    shipper: &Shipper,
    shutdown: &Shutdown,
) -> Result<u64, Failure> {
    let emit = |thread, shares: Receiver<Share>| {
        let stream = Stream {
            producer: args.producer,
            life: args.life,
            thread,
        };
        move || emit(args.seed, stream, &shares, shipper, shutdown)
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..args.threads)
            .zip(receivers)
            .map(|(thread, shares)| {
                thread::Builder::new()
                    .name(format!("baler-emit-{thread}"))
                    .spawn_scoped(scope, emit(thread, shares))
            })
            .collect::<Result<_, _>>()
            .map_err(Failure::thread)?;
        let issued = threads.into_iter().map(thread::ScopedJoinHandle::join);
        issued.sum::<Result<u64, _>>().map_err(Failure::panicked)
    })
}

/// Makes the records of one thread. Returns how many it made.
fn emit(
    seed: u64,
    stream: Stream,
    shares: &Receiver<Share>,
    shipper: &Shipper,
    shutdown: &Shutdown,
) -> u64 {
    let mut number = 0;
    while !shipper.should_stop() {
        let Share { records, over } = match shares.recv_timeout(TICK) {
            Ok(share) => share,
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => break,
        };
        let started = Instant::now();
        let (mut made, mut wait) = (0, Duration::ZERO);
        while made < records && !shipper.should_stop() {
            shutdown.wait_until(started + wait);
            let burst = BURST.min(records - made);
            for _ in 0..burst {
                // The controller counts a record that it refuses, with the reason.
                let record = Numbered::make(seed, stream, number);
                shipper.controller.emit(&record);
                number += 1;
            }
            made += burst;
            #[expect(clippy::cast_precision_loss, reason = "a share of a short time")]
            let share = made as f64 / records as f64;
            wait = over.mul_f64(share);
        }
    }
    number
}
