//! Many senders of Kieker before a relay with a spool. Accepted records arrive, even if the broker
//! is away. A killed relay loses only the records that the README of the connector names.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs;
use std::io::Write as _;
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};

use baler_connector_kafka::EmbeddedCluster;
use baler_connector_testkit::faults::RabbitMqNode;
use serde_json::json;

use super::relay::{is_exact, receive_count};
use crate::observability::{get, sum};
use crate::relay::{RelayProcess, receive};
use crate::support::{json_lines, wait_for};

/// The number of records with the same trace id.
const TRACE_RECORDS: u64 = 10;

/// A socket writer of Kieker, whose records are numbered.
struct KiekerSender {
    connection: TcpStream,
    records: u64,
    /// The id of its first string.
    first: i32,
}

impl KiekerSender {
    /// Connects as one of three writers in turn: a writer in Java, which counts UTF-16 units; one
    /// in C, which counts bytes; and one in Python, whose ids begin at 1.
    fn connect(relay: &RelayProcess, number: usize) -> Self {
        let address = relay.uri.trim_start_matches("tcp://");
        let mut sender = Self {
            connection: TcpStream::connect(address).unwrap(),
            records: 0,
            first: i32::from(number % 3 == 2),
        };
        let class = "kieker.common.record.controlflow.OperationExecutionRecord";
        let host = format!("host-{number}");
        let strings = (sender.first..).zip([class, "void a.B.fü()", "<no-session-id>", &host]);
        let mut bytes = Vec::new();
        for (id, text) in strings {
            let length = match number % 3 {
                0 => text.encode_utf16().count(),
                _ => text.len(),
            };
            let head = [-1, id, i32::try_from(length).unwrap()];
            bytes.extend(head.map(i32::to_be_bytes).concat());
            bytes.extend(text.as_bytes());
        }
        sender.connection.write_all(&bytes).unwrap();
        sender
    }

    /// Sends records. A record's number is its time of entry. The number divided by `TRACE_RECORDS`
    /// is its trace id.
    fn send(&mut self, records: u64) {
        let mut bytes = Vec::new();
        for number in self.records..self.records + records {
            let string = |place: i32| (self.first + place).to_be_bytes();
            let (trace, place) = (number / TRACE_RECORDS, number % TRACE_RECORDS);
            bytes.extend(string(0));
            bytes.extend(1_700_000_000_000_000_000_u64.to_be_bytes());
            bytes.extend([string(1), string(2)].concat());
            bytes.extend([trace, number, number + 1].map(u64::to_be_bytes).concat());
            bytes.extend(string(3));
            bytes.extend(u32::try_from(place).unwrap().to_be_bytes());
            bytes.extend([0; 4]);
        }
        self.connection.write_all(&bytes).unwrap();
        self.records += records;
    }
}

/// Asserts that the lines are this number of records of each sender, each once and in order. Each
/// trace has an id that no other trace has.
fn assert_complete(text: &str, senders: usize, records: u64) {
    let mut numbers: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    let mut ids: BTreeMap<(String, u64), i64> = BTreeMap::new();
    for line in json_lines(text) {
        let fields = &line["fields"];
        assert_eq!(fields["operationSignature"], "void a.B.fü()");
        let host = fields["hostname"].as_str().unwrap().to_owned();
        let number = fields["tin"].as_u64().unwrap();
        assert_eq!(fields["eoi"], number % TRACE_RECORDS);
        let id = fields["traceId"].as_i64().unwrap();
        let trace = (host.clone(), number / TRACE_RECORDS);
        assert_eq!(*ids.entry(trace).or_insert(id), id, "{line}");
        numbers.entry(host).or_default().push(number);
    }
    let hosts: BTreeSet<_> = (0..senders)
        .map(|sender| format!("host-{sender}"))
        .collect();
    assert!(numbers.keys().eq(&hosts), "{:?}", numbers.keys());
    for (host, numbers) in &numbers {
        assert!(
            numbers.iter().copied().eq(0..records),
            "{host}: {numbers:?}"
        );
    }
    let unique: HashSet<_> = ids.values().collect();
    assert_eq!(unique.len(), ids.len(), "an id of two traces");
}

/// Starts a relay from senders of Kieker, with a spool in this folder.
fn start_relay(to: &str, folder: &Path, flags: &[&str]) -> RelayProcess {
    let spool = folder.join("spool");
    let mut all = vec!["--spool", spool.to_str().unwrap(), "--spool-after", "50ms"];
    all.extend(flags);
    let from = "kieker+tcp://127.0.0.1:0?trace_ids=unique";
    RelayProcess::start(from, to, folder, &all)
}

/// Runs 100 senders before, while and after a broker is away for ten seconds.
fn nothing_is_lost_while_away(
    to: &str,
    from: &str,
    leave: impl FnOnce(),
    come_back: impl FnOnce(),
) {
    const SENDERS: usize = 100;
    let folder = tempfile::tempdir().unwrap();
    let relay = start_relay(to, folder.path(), &[]);
    let senders = 0..SENDERS;
    let mut senders: Vec<_> = senders
        .map(|it| KiekerSender::connect(&relay, it))
        .collect();
    let total = 150 * SENDERS;
    let receiver = receive_count(from, &folder.path().join("received"), total);
    let mut send = || senders.iter_mut().for_each(|sender| sender.send(50));
    send();
    wait_for("records at the receiver", || {
        receiver.has_output().then_some(())
    });
    leave();
    let left = Instant::now();
    send();
    wait_for("ten seconds", || {
        (left.elapsed() > Duration::from_secs(10)).then_some(())
    });
    come_back();
    send();
    drop(senders);
    let text = receiver.succeed_with_text();
    is_exact(&text, u64::try_from(total).unwrap());
    assert_complete(&text, SENDERS, 150);
    let (summary, code) = relay.end();
    assert_eq!((code, &summary["given_back"]), (0, &json!(0)), "{summary}");
    assert_eq!(
        (&summary["damaged"], &summary["quarantined"]),
        (&json!(0), &json!(0))
    );
    assert!(summary["spooled"].as_u64() > Some(0), "{summary}");
}

#[test]
fn nothing_of_100_senders_of_kieker_is_lost_while_rabbitmq_is_away() {
    let node = RabbitMqNode::start().unwrap();
    let queue = node.uri("?queue=kieker");
    let (leave, come_back) = (|| node.stop().unwrap(), || node.restart().unwrap());
    nothing_is_lost_while_away(&queue, &queue, leave, come_back);
}

#[test]
fn nothing_of_100_senders_of_kieker_is_lost_while_kafka_is_away() {
    let cluster = EmbeddedCluster::start("kieker", 4).unwrap();
    let topic = format!("kafka://{}/kieker", cluster.bootstrap_servers());
    let from = format!("{topic}?group.id=all");
    let each = |change: &dyn Fn(i32)| cluster.brokers().for_each(change);
    let leave = || each(&|broker| cluster.broker_down(broker).unwrap());
    let come_back = || each(&|broker| cluster.broker_up(broker).unwrap());
    nothing_is_lost_while_away(&topic, &from, leave, come_back);
}

/// Records in the spool arrive. Records that the relay did not read are lost, even if TCP took
/// them.
#[test]
fn a_killed_relay_of_senders_of_kieker_loses_what_it_had_not_spooled_and_nothing_else() {
    const SENDERS: usize = 20;
    let folder = tempfile::tempdir().unwrap();
    let node = RabbitMqNode::prepare().unwrap();
    let queue = node.uri("?queue=kieker");
    let port = folder.path().join("metrics-port");
    let metrics = [
        "--metrics",
        "127.0.0.1:0",
        "--metrics-port-file",
        port.to_str().unwrap(),
    ];
    let relay = start_relay(&queue, folder.path(), &metrics);
    let senders = 0..SENDERS;
    let mut senders: Vec<_> = senders
        .map(|it| KiekerSender::connect(&relay, it))
        .collect();
    senders.iter_mut().for_each(|sender| sender.send(200));
    let metrics = wait_for("an address", || fs::read_to_string(&port).ok());
    wait_for("all records in the spool", || {
        let (_, text) = get(&metrics, "/metrics");
        (sum(&text, "baler_spool_records_total") == 4_000.0).then_some(())
    });
    relay.process.signal("STOP");
    senders.iter_mut().for_each(|sender| sender.send(50));
    relay.process.signal("KILL");
    relay.process.end();

    let second = start_relay(&queue, folder.path(), &[]);
    node.restart().unwrap();
    let text = receive_count(&queue, &folder.path().join("received"), 4_000).succeed_with_text();
    assert_complete(&text, SENDERS, 200);
    let (summary, code) = second.end();
    assert_eq!((code, &summary["received"]), (0, &json!(0)), "{summary}");
    let rest = receive(&queue, &folder.path().join("rest"));
    assert_eq!(rest["records"], 0, "{rest}");
}
