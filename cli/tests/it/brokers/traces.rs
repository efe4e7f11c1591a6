//! Traces whose trees are known, from 8 producers through brokers to 4 consumers, one of which is
//! killed: every tree is exact.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::thread;

use baler_analysis::traces::{ClosedTrace, Operations, Outcome, SavedTraces, TraceAnalysis};
use baler_common::transport::ChunkWriter;
use baler_common::transport::uri::Uri;
use baler_connector_amqp::{AmqpConfig, AmqpWriter};
use baler_connector_kafka::{EmbeddedCluster, KafkaConfig, KafkaWriter};
use baler_connector_kieker::types::{OperationExecutionRecord, TraceMetadata};
use baler_connector_testkit::faults::RabbitMqNode;
use baler_monitoring::{Controller, Overflow};

use crate::support::{Background, DEADLINE, wait_for};

const PRODUCERS: u64 = 8;
const CONSUMERS: usize = 4;

/// A lane for each queue, and a multiple of it for Kafka's mock, which keeps 5 MiB a partition.
const LANES: usize = 32;

/// A small generator of numbers: SplitMix64 (Steele, Lea, Flood, 2014).
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed >> 33) % sides
    }
}

/// Returns the operations and depths of a trace, in order of entry: 1 to 40 levels.
fn calls(number: u64) -> Vec<(u64, i32)> {
    let mut dice = Dice(number);
    // One in twenty goes straight down.
    let is_straight = dice.roll(20) == 0;
    let deepest = i32::try_from(dice.roll(40)).unwrap();
    let size = if is_straight { 45 } else { 1 + dice.roll(12) };
    let mut depth = 0;
    let mut calls = vec![(dice.roll(30), 0)];
    for _ in 1..size {
        if deepest == 0 {
            break;
        }
        let goes_down = is_straight || dice.roll(4) > 0;
        let levels = u64::try_from(depth).unwrap() + 1;
        let next = if goes_down {
            depth + 1
        } else {
            1 + i32::try_from(dice.roll(levels)).unwrap()
        };
        depth = next.min(deepest);
        calls.push((dice.roll(30), depth));
    }
    calls
}

/// Returns the id of a trace. The trace before each eighth one calls it in another process, so both
/// ids have the same lane group.
fn id(number: u64) -> i64 {
    let id = match number % 8 {
        7 => (number - 1) ^ (1 << 24) ^ (1 << 40),
        _ => number,
    };
    i64::try_from(id).unwrap()
}

fn signature(operation: u64) -> String {
    format!("void shop.Part{}.run{operation}(int)", operation % 5)
}

/// Sends its part of the calls of these traces, in any order within a thousand traces.
fn produce(controller: &Controller, producer: u64, traces: std::ops::Range<u64>) {
    let host = format!("host{producer}");
    let no_session = "<no-session-id>";
    let mut dice = Dice(producer);
    let mut block = Vec::new();
    for number in traces.clone() {
        for ((eoi, (operation, ess)), call) in (0..).zip(calls(number)).zip(0..) {
            if (number + call) % PRODUCERS == producer {
                block.push((number, eoi, operation, ess));
            }
        }
        if number % 8 == 7 && number / 8 % PRODUCERS == producer {
            controller.emit(&TraceMetadata {
                trace_id: id(number),
                thread_id: 1,
                session_id: no_session.into(),
                hostname: host.clone(),
                parent_trace_id: id(number - 1),
                parent_order_id: 0,
            });
        }
        if number % 1_000 != 999 && number + 1 != traces.end {
            continue;
        }
        for last in (1..block.len()).rev() {
            let other = dice.roll(last as u64 + 1);
            block.swap(last, usize::try_from(other).unwrap());
        }
        for (number, eoi, operation, ess) in block.drain(..) {
            let tin = 1_000_000 + i64::try_from(number).unwrap() * 1_000 + i64::from(eoi);
            controller.emit(&OperationExecutionRecord {
                operation_signature: signature(operation),
                session_id: no_session.into(),
                trace_id: id(number),
                tin,
                tout: tin + 10,
                hostname: host.clone(),
                eoi,
                ess,
            });
        }
    }
}

/// How many traces are sent, how often a consumer writes its file, and when it ends.
#[derive(Clone, Copy)]
struct Plan {
    traces: u64,
    interval: &'static str,
    idle: &'static str,
}

const FEW: Plan = Plan {
    traces: 20_000,
    interval: "500ms",
    idle: "10s",
};

const MANY: Plan = Plan {
    traces: 1_000_000,
    interval: "30s",
    idle: "60s",
};

/// Starts a consumer with results of its own.
fn consumer(uri: &str, partial: &Path, plan: Plan) -> Background {
    let partial = partial.to_str().unwrap();
    let args = ["analyze", "--from", uri, "--follow", "--partial", partial];
    let times = [
        "--partial-interval",
        plan.interval,
        "--idle-timeout",
        plan.idle,
    ];
    Background::start(&[&args[..], &times, &["--format", "json"]].concat())
}

/// Sends this number of traces, kills the first consumer in the middle, and compares every tree.
fn every_tree_is_exact(
    plan: Plan,
    consumers: &[String; CONSUMERS],
    writer: impl Fn() -> Box<dyn ChunkWriter>,
) {
    let traces = plan.traces;
    let folder = tempfile::tempdir().unwrap();
    let files: Vec<PathBuf> = (0..CONSUMERS)
        .map(|number| folder.path().join(format!("{number}.json")))
        .collect();
    let starts = consumers.iter().zip(&files);
    let mut running: Vec<_> = starts
        .map(|(uri, file)| consumer(uri, file, plan))
        .collect();
    let controllers: Vec<_> = (0..PRODUCERS)
        .map(|_| {
            let builder = Controller::builder(writer()).metadata_record(false);
            builder
                .lanes(LANES)
                .overflow(Overflow::Block)
                .start()
                .unwrap()
        })
        .collect();
    let produce_all = |traces: std::ops::Range<u64>| {
        thread::scope(|scope| {
            for (producer, controller) in (0..).zip(&controllers) {
                let traces = traces.clone();
                scope.spawn(move || produce(controller, producer, traces));
            }
        });
    };
    produce_all(0..traces / 2);
    wait_for("results of the first consumer", || {
        files[0].exists().then_some(())
    });
    // By SIGKILL.
    drop(running.remove(0));
    running.push(consumer(&consumers[0], &files[0], plan));
    produce_all(traces / 2..traces);
    for controller in &controllers {
        let report = controller.shutdown(DEADLINE);
        assert!(
            report.adds_up() && report.dropped().total() == 0,
            "{report}"
        );
    }
    for process in running {
        process.succeed();
    }

    let parts = files
        .iter()
        .map(|file| SavedTraces::read(File::open(file).unwrap()).unwrap());
    let mut analysis = TraceAnalysis::default();
    analysis.add_saved(parts.collect());
    let mut seen = 0;
    let mut deepest = [false; 40];
    analysis.finish(|closed, operations| {
        let depth = compare(closed, operations);
        deepest[usize::try_from(depth).unwrap()] = true;
        seen += 1;
    });
    assert_eq!(seen, traces);
    assert!(deepest.iter().all(|depth| *depth), "{deepest:?}");
    let counts = analysis.profile().counts();
    println!("{counts:?}");
    assert_eq!(
        (counts.valid, counts.linked, counts.late),
        (traces, traces / 8, 0)
    );
    assert_eq!(counts.parent_missing, 0);
    let records: u64 = (0..traces).map(|number| calls(number).len() as u64).sum();
    // A record of a trace's caller that came twice is no copy of a call.
    let (sent, arrived) = (records + traces / 8, counts.records - counts.copies);
    assert!(
        arrived == sent || arrived > sent && counts.shared_chunks > 0,
        "{sent} {counts:?}"
    );
}

/// Compares a trace with the known tree. Returns its depth.
fn compare(closed: &ClosedTrace, operations: &Operations) -> i32 {
    let trace = &closed.trace;
    let number = match u64::try_from(trace.id).unwrap() {
        id if id >= 1 << 40 => (id ^ (1 << 24) ^ (1 << 40)) + 1,
        id => id,
    };
    assert_eq!(closed.outcome, Outcome::Valid, "{trace:?}");
    let found = trace.calls.iter().map(|call| {
        let operation = operations.get(call.operation).unwrap();
        (operation.signature.to_string(), call.ess)
    });
    let expected = calls(number);
    let expected = expected
        .iter()
        .map(|(operation, depth)| (signature(*operation), *depth));
    assert!(found.eq(expected), "{trace:?}");
    trace.max_depth()
}

fn fresh_name() -> String {
    format!("traces-{}", std::process::id())
}

fn through_rabbitmq(plan: Plan) {
    let node = RabbitMqNode::start().unwrap();
    let queue = fresh_name();
    let uri = node.uri(&format!("?queue={queue}&lane_queues={CONSUMERS}"));
    let consumers = [0, 1, 2, 3].map(|lane| node.uri(&format!("?queue={queue}.{lane}")));
    let config = AmqpConfig::from_uri(Uri::parse(&uri).unwrap()).unwrap();
    let writer = || Box::new(AmqpWriter::new(config.clone())) as Box<dyn ChunkWriter>;
    // Consumers may not be first: the writer declares the queues with their bindings.
    every_tree_is_exact(plan, &consumers, writer);
}

fn through_kafka(plan: Plan) {
    let cluster = EmbeddedCluster::with_brokers(std::num::NonZeroU16::MIN).unwrap();
    let topic = fresh_name();
    let partitions = u16::try_from(LANES).unwrap();
    cluster.create_topic(&topic, partitions, 1).unwrap();
    let uri = format!(
        "kafka://{}/{topic}?partition_by=trace",
        cluster.bootstrap_servers()
    );
    let consumers = [(); CONSUMERS].map(|()| format!("{uri}&session.timeout.ms=6000"));
    let config = KafkaConfig::from_uri(Uri::parse(&uri).unwrap()).unwrap();
    let writer = || Box::new(KafkaWriter::new(config.clone())) as Box<dyn ChunkWriter>;
    every_tree_is_exact(plan, &consumers, writer);
}

#[test]
fn every_tree_of_20_000_traces_arrives_whole_through_rabbitmq() {
    through_rabbitmq(FEW);
}

#[test]
fn every_tree_of_20_000_traces_arrives_whole_through_kafka() {
    through_kafka(FEW);
}

#[test]
#[ignore = "needs minutes: cargo test -p baler-cli --all-features --test it million -- --ignored --nocapture"]
fn every_tree_of_a_million_traces_arrives_whole_through_rabbitmq() {
    through_rabbitmq(MANY);
}

#[test]
#[ignore = "needs minutes: cargo test -p baler-cli --all-features --test it million -- --ignored --nocapture"]
fn every_tree_of_a_million_traces_arrives_whole_through_kafka() {
    through_kafka(MANY);
}
