//! OTLP from outside: the exporters of OpenTelemetry's SDK for Python send, and servers in Python
//! receive.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Command, Stdio};

use baler_connector_kafka::EmbeddedCluster;
use baler_connector_testkit::faults::RabbitMqNode;
use serde_json::{Value, json};

use crate::relay::RelayProcess;
use crate::support::workspace;

/// Python with the exporters, which `scripts/test` installs below its build folder.
fn python() -> Command {
    let program = std::env::current_exe().unwrap();
    let folders = program.ancestors();
    let mut folders = folders.map(|it| it.join("tools/opentelemetry"));
    let folder = folders.find(|it| it.join("opentelemetry").is_dir());
    let folder = folder.expect(
        "no exporters of OpenTelemetry: `scripts/test --only slow` installs them, or \
         `pip install --require-hashes -r scripts/support/opentelemetry.txt --target \
         target/tools/opentelemetry`",
    );
    let mut python = Command::new("python3");
    python.env("PYTHONPATH", folder);
    python
}

/// The number of records of each kind: `BALER_OTLP_RECORDS`, or 10,000.
fn records() -> u64 {
    let set = std::env::var("BALER_OTLP_RECORDS");
    set.map_or(10_000, |number| number.parse().expect("a number"))
}

#[test]
fn records_of_pythons_exporters_pass_through_rabbitmq_and_kafka_field_by_field() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let cluster = EmbeddedCluster::start("otlp", 4).unwrap();
    let topic = format!("kafka://{}/otlp", cluster.bootstrap_servers());
    let node = RabbitMqNode::start().unwrap();
    let queue = node.uri("?queue=otlp");
    let first = RelayProcess::start(
        "otlp://127.0.0.1:0?max_chunk_bytes=100KB",
        &queue,
        &path("first"),
        &[],
    );
    let second = RelayProcess::between(&queue, &topic);
    let errors = path("errors");
    let mut python = python()
        .arg(workspace("cli/tests/it/otlp/exporters.py"))
        .arg(first.uri.trim_start_matches("tcp://"))
        .arg(records().to_string())
        .stdout(Stdio::piped())
        .stderr(fs::File::create(&errors).unwrap())
        .spawn()
        .expect("python3 runs; Debian's package is python3");
    let mut output = BufReader::new(python.stdout.take().unwrap());
    let mut ports = String::new();
    output.read_line(&mut ports).unwrap();
    let errors = || fs::read_to_string(&errors).unwrap();
    let [http, grpc]: [u16; 2] =
        serde_json::from_str(&ports).unwrap_or_else(|error| panic!("{error}: {}", errors()));
    let relays = [
        ("http", format!("otlp+http://127.0.0.1:{http}?timeout=60s")),
        ("grpc", format!("otlp://127.0.0.1:{grpc}?timeout=60s")),
    ];
    let relays = relays.map(|(group, to)| {
        let from = format!("{topic}?group.id={group}");
        RelayProcess::between(&from, &to)
    });
    let mut counts = String::new();
    output.read_to_string(&mut counts).unwrap();
    let status = python.wait().unwrap();
    // Shown if the test fails.
    eprint!("{}", errors());
    // First the relays, because they may be the cause.
    for relay in [first, second].into_iter().chain(relays) {
        let (summary, code) = relay.end();
        assert_eq!((code, &summary["quarantined"]), (0, &json!(0)), "{summary}");
    }
    assert!(status.success(), "{status}: {}", errors());
    let counts: Value = serde_json::from_str(&counts).unwrap();
    let all = records();
    let expected = json!({ "spans": all, "logs": all, "points": all });
    assert_eq!(counts, expected);
}
