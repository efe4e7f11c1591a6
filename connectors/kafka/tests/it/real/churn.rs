//! Measures a group whose members come and go: how long partitions rest, and what comes twice.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use baler_common::transport::uri::Uri;
use baler_common::transport::{
    ChunkReader, ChunkWriter, LaneName, Received, RejectReason, Verdict,
};
use baler_connector_kafka::{KafkaConfig, KafkaReader, KafkaWriter, PartitionBy};
use baler_connector_testkit::faults::KafkaProxy;
use baler_connector_testkit::{ChunkSource, Dice, Label, PATIENCE, read_label};

use super::{bootstrap, name};
use crate::support::soon;

/// How long members come and go, unless `KAFKA_SECONDS` says it.
const DURATION: Duration = Duration::from_secs(60);

const MEMBERS: usize = 4;

/// How a member goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Goes {
    /// It closes its reader.
    Leaves,
    /// It falls silent, and its connections end, as if its process was killed.
    Killed,
}

/// A chunk that a member received.
struct Arrival {
    at: Instant,
    partition: LaneName,
    label: Label,
    member: usize,
}

/// A member of the group, with a thread and a way to the broker of its own.
struct Member {
    number: usize,
    slot: usize,
    stop: Arc<AtomicBool>,
    proxy: KafkaProxy,
    thread: JoinHandle<Box<KafkaReader>>,
}

impl Member {
    fn join(
        (number, slot): (usize, usize),
        config: &impl Fn(&str, usize) -> KafkaConfig,
        arrivals: Sender<Arrival>,
    ) -> Self {
        let proxy = KafkaProxy::start(&bootstrap()).unwrap();
        let config = config(proxy.bootstrap_servers(), slot);
        let mut reader = Box::new(KafkaReader::open(config).unwrap());
        reader.set_demand(64);
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            while !stopped.load(Ordering::Acquire) {
                let received = reader.receive(Instant::now() + Duration::from_millis(50));
                if let Ok(Received::Chunk(delivery)) = received {
                    let arrival = Arrival {
                        at: Instant::now(),
                        partition: delivery.origin.lane.clone(),
                        label: read_label(&delivery.bytes),
                        member: number,
                    };
                    arrivals.send(arrival).unwrap();
                    reader.settle(delivery.token, Verdict::Ack).unwrap();
                }
            }
            reader
        });
        Self {
            number,
            slot,
            stop,
            proxy,
            thread,
        }
    }

    fn go(self, how: Goes) {
        self.stop.store(true, Ordering::Release);
        let reader = self.thread.join().unwrap();
        match how {
            Goes::Killed => drop(self.proxy),
            Goes::Leaves => {
                let report = reader.close(Instant::now() + Duration::from_secs(10));
                if let Some(error) = report.error {
                    eprintln!("a member left with {error}");
                }
            }
        }
    }
}

/// Sends chunks to every partition until it is stopped; yields how many.
fn send(config: KafkaConfig, stop: &AtomicBool) -> usize {
    let mut writer: Box<dyn ChunkWriter> = Box::new(KafkaWriter::new(config));
    writer.reopen(soon()).unwrap();
    let (mut source, mut sent, mut known) = (ChunkSource::new(1), 0, Vec::new());
    let mut waiting = None;
    let start = Instant::now();
    while !stop.load(Ordering::Acquire) {
        // 500 chunks a second.
        let due = usize::try_from(start.elapsed().as_millis() / 2).unwrap();
        while sent < due {
            let lane = u32::try_from(sent % 32).unwrap();
            let chunk = waiting.take();
            let chunk = chunk.unwrap_or_else(|| source.next(lane, 200));
            if let Err(rejected) = writer.offer(chunk) {
                // On a busy machine the broker may be slower than that.
                assert!(matches!(rejected.reason, RejectReason::Full));
                waiting = Some(rejected.chunk);
                break;
            }
            sent += 1;
        }
        writer.delivery_reports(&mut known).unwrap();
        thread::park_timeout(Duration::from_millis(5));
    }
    known.extend(writer.close(soon()).delivery_reports);
    assert_eq!(known.len(), sent, "everything is confirmed");
    sent
}

/// The longest time between two arrivals.
fn longest_rest<'a>(arrivals: impl Iterator<Item = &'a Arrival>) -> Duration {
    let mut times: Vec<_> = arrivals.map(|arrival| arrival.at).collect();
    times.sort_unstable();
    let rests = times.windows(2).map(|pair| pair[1] - pair[0]);
    rests.max().unwrap_or_default()
}

/// Has a member go every `period`, and another one come at once. Prints the figures. `settings` are
/// those of the reader in a slot; `KAFKA_READER` has further ones.
fn measure(how: Goes, period: Duration, settings: impl Fn(usize) -> String) {
    let (bootstrap, name) = (bootstrap(), name());
    let further = std::env::var("KAFKA_READER").unwrap_or_default();
    let reader = |servers: &str, slot| {
        let settings = settings(slot);
        let uri = format!("kafka://{servers}/{name}?group.id={name}{settings}&{further}");
        KafkaConfig::from_uri(Uri::parse(uri.trim_end_matches('&')).unwrap()).unwrap()
    };
    let mut writer = KafkaConfig::new(&bootstrap, name.as_str());
    writer.partition_by = PartitionBy::Lane;
    writer.create_topic = Some(super::shape());
    KafkaWriter::new(writer.clone()).reopen(soon()).unwrap();
    let (arrivals, arrived): (_, Receiver<Arrival>) = channel();
    let join = |number, slot| Member::join((number, slot), &reader, arrivals.clone());
    let mut members: Vec<_> = (0..MEMBERS).map(|slot| join(slot, slot)).collect();
    let stop = Arc::new(AtomicBool::new(false));
    let sending = thread::spawn({
        let stop = Arc::clone(&stop);
        move || send(writer, &stop)
    });
    let mut all = vec![arrived.recv_timeout(PATIENCE).expect("the group forms")];
    let mut gone = HashMap::new();
    let mut dice = Dice::new(1);
    let mut going = Vec::new();
    let seconds = std::env::var("KAFKA_SECONDS").map(|seconds| seconds.parse().unwrap());
    let end = Instant::now() + seconds.map_or(DURATION, Duration::from_secs);
    let mut next = Instant::now();
    while next < end {
        next += period;
        while let Ok(arrival) = arrived.recv_timeout(next.saturating_duration_since(Instant::now()))
        {
            all.push(arrival);
        }
        let member = dice.draw(&mut members).unwrap();
        let (number, slot) = (member.number, member.slot);
        going.push(thread::spawn(move || member.go(how)));
        members.push(join(MEMBERS + gone.len(), slot));
        gone.insert(number, how);
    }
    stop.store(true, Ordering::Release);
    let sent = sending.join().unwrap();
    let stopped = Instant::now();
    let mut distinct: HashSet<_> = all.iter().map(|arrival| arrival.label).collect();
    while distinct.len() < sent {
        let arrival = arrived.recv_timeout(PATIENCE).expect("all arrives");
        distinct.insert(arrival.label);
        all.push(arrival);
    }
    members
        .into_iter()
        .for_each(|member| member.go(Goes::Leaves));
    for going in going {
        going.join().unwrap();
    }
    all.extend(arrived.try_iter());
    let flowing = || all.iter().filter(|arrival| arrival.at < stopped);
    let mut partitions: HashMap<_, Vec<_>> = HashMap::new();
    for arrival in flowing() {
        let rest = partitions.entry(&arrival.partition).or_default();
        rest.push(arrival);
    }
    let rests = partitions.values();
    let one = rests.map(|arrivals| longest_rest(arrivals.iter().copied()));
    let (mut first, mut copies) = (HashMap::new(), [0_usize; 3]);
    for arrival in &all {
        if let Some(member) = first.insert(arrival.label, arrival.member) {
            copies[match gone.get(&member) {
                Some(Goes::Killed) => 0,
                Some(Goes::Leaves) => 1,
                None => 2,
            }] += 1;
        }
    }
    let percent = |copies: usize| 100.0 * copies as f64 / sent as f64;
    eprintln!(
        "{} {how:?} every {period:?}, {further:?}: {sent} chunks; nobody got any for {:.1?}, a \
         partition rested for {:.1?}; came twice: {:.2?} % (first at a member that was killed, that \
         left, that stayed)",
        gone.len(),
        longest_rest(flowing()),
        one.max().unwrap_or_default(),
        copies.map(percent),
    );
    // Members that leave, and members that stay, commit what they have settled in time.
    assert_eq!(copies[1..], [0, 0]);
}

#[test]
#[ignore = "needs KAFKA_BOOTSTRAP"]
fn members_that_leave_lose_nothing_and_double_nothing() {
    measure(Goes::Leaves, Duration::from_secs(3), |_| String::new());
}

#[test]
#[ignore = "needs KAFKA_BOOTSTRAP"]
fn members_that_are_killed_often_lose_nothing() {
    measure(Goes::Killed, Duration::from_secs(3), |_| String::new());
}

#[test]
#[ignore = "needs KAFKA_BOOTSTRAP"]
fn members_that_are_killed_lose_nothing() {
    measure(Goes::Killed, Duration::from_secs(10), |_| String::new());
}

#[test]
#[ignore = "needs KAFKA_BOOTSTRAP"]
fn static_members_that_are_killed_lose_nothing() {
    let settings = |slot| format!("&group.instance.id=slot-{slot}");
    measure(Goes::Killed, Duration::from_secs(3), settings);
}
