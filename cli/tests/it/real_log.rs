//! The real log of 2010 goes through every medium and container, and every field stays equal.

use std::fs;

use serde_json::{Map, Value, json};

use crate::support::{Receiver, file_uri, json, json_lines, output, real_log, workspace};

/// The records of the log: one of metadata, 6,540 executions.
const RECORDS: usize = 6_541;

/// Containers and compressions, as flags.
const WAYS: [&[&str]; 5] = [
    &["--compression", "none"],
    &["--compression", "lz4"],
    &["--compression", "zstd"],
    &["--compression", "zstd:19"],
    &["--container", "kieker"],
];

/// Returns the log, parsed by this test alone: split at semicolons, with the types of the class for
/// numbers.
pub(crate) fn expected() -> Vec<Value> {
    let folder = workspace("analysis/tests/data/kieker/operation-executions-2010");
    let log = folder.join("kieker-20100830-082225582-UTC-Thread-2.dat");
    let records: Vec<Value> = fs::read_to_string(log)
        .unwrap()
        .lines()
        .map(record)
        .collect();
    assert_eq!(records.len(), RECORDS);
    records
}

fn record(line: &str) -> Value {
    const METADATA: [(&str, char); 8] = [
        ("version", 's'),
        ("controllerName", 's'),
        ("hostname", 's'),
        ("experimentId", 'n'),
        ("debugMode", 'b'),
        ("timeOffset", 'n'),
        ("timeUnit", 's'),
        ("numberOfRecords", 'n'),
    ];
    const EXECUTION: [(&str, char); 8] = [
        ("operationSignature", 's'),
        ("sessionId", 's'),
        ("traceId", 'n'),
        ("tin", 'n'),
        ("tout", 'n'),
        ("hostname", 's'),
        ("eoi", 'n'),
        ("ess", 'n'),
    ];
    let cells: Vec<&str> = line.split(';').collect();
    let (name, fields) = match cells[0] {
        "$0" => ("kieker.common.record.misc.KiekerMetadataRecord", METADATA),
        "$1" => (
            "kieker.common.record.controlflow.OperationExecutionRecord",
            EXECUTION,
        ),
        other => panic!("{other}"),
    };
    assert_eq!(cells.len(), fields.len() + 2, "{line}");
    let timestamp = match cells[1].parse::<i64>().unwrap() {
        -1 => Value::Null,
        time => json!(time),
    };
    let fields: Map<String, Value> = fields
        .iter()
        .zip(&cells[2..])
        .map(|((name, kind), cell)| {
            let value = match kind {
                's' => json!(cell),
                'b' => json!(cell.parse::<bool>().unwrap()),
                _ => json!(cell.parse::<i64>().unwrap()),
            };
            ((*name).to_owned(), value)
        })
        .collect();
    json!({"type": name, "timestamp": timestamp, "fields": fields})
}

fn assert_all(text: &str, way: &[&str]) {
    let records = json_lines(text);
    let expected = expected();
    assert_eq!(records.len(), expected.len(), "{way:?}");
    for (position, (record, expected)) in records.iter().zip(&expected).enumerate() {
        assert_eq!(record, expected, "record {position}, {way:?}");
    }
}

#[test]
fn the_log_goes_over_tcp_whole_and_in_order() {
    for way in WAYS {
        let folder = tempfile::tempdir().unwrap();
        let receiver = Receiver::start(folder.path(), &["--count", "6541"]);
        let log = real_log();
        let mut send = vec!["send", "--from", &log, "--to", &receiver.uri];
        send.extend(["--format", "json"]);
        send.extend(way);
        let sent = json(&send);
        assert_eq!(sent["emitted"], RECORDS, "{way:?}");
        assert_eq!(sent["delivered"], RECORDS, "{way:?}");
        assert_eq!(sent["dropped"], json!({}), "{way:?}");
        let (records, summary) = receiver.succeed();
        assert_all(&records, way);
        assert_eq!(summary["records"], RECORDS);
        assert_eq!(summary["ended_by"], "count");
        assert_eq!(summary["gaps"], json!([]));
    }
}

#[test]
fn the_log_goes_through_a_folder_whole_and_in_order() {
    for way in WAYS {
        let folder = tempfile::tempdir().unwrap();
        let uri = file_uri(&folder.path().join("chunks"));
        let log = real_log();
        let mut send = vec!["send", "--from", &log, "--to", &uri, "--format", "json"];
        send.extend(way);
        let sent = json(&send);
        assert_eq!(sent["delivered"], RECORDS, "{way:?}");
        let records = output(&["receive", "--from", &uri, "--format", "json"]);
        assert_all(&records, way);
    }
}

#[test]
fn a_relay_changes_the_container_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let uri = |name: &str| file_uri(&folder.path().join(name));
    let (log, first, second) = (real_log(), uri("first"), uri("second"));
    let small = ["--container", "kieker", "--chunk-records", "50"];
    let mut send = vec!["send", "--from", &log, "--to", &first, "--format", "json"];
    send.extend(small);
    json(&send);
    let mut relay = vec![
        "send", "--from", &first, "--to", &second, "--format", "json",
    ];
    relay.extend(["--compression", "lz4"]);
    let relayed = json(&relay);
    assert_eq!(relayed["source"]["records"], RECORDS);
    assert_eq!(relayed["source"]["chunks"], RECORDS.div_ceil(50));
    assert_eq!(
        relayed["source"]["acknowledged"],
        relayed["source"]["chunks"]
    );
    assert_eq!(relayed["delivered"], RECORDS);
    let records = output(&["receive", "--from", &second, "--format", "json"]);
    assert_all(&records, &["relay"]);
}

#[test]
fn selections_and_figures_are_those_of_the_log() {
    let folder = tempfile::tempdir().unwrap();
    let uri = file_uri(&folder.path().join("chunks"));
    output(&["send", "--from", &real_log(), "--to", &uri]);
    let receive = |flags: &[&str]| {
        let summary = folder.path().join("summary.json");
        let mut args = vec!["receive", "--from", &uri, "--format", "json"];
        args.extend(["--summary", summary.to_str().unwrap()]);
        args.extend(flags);
        let lines = json_lines(&output(&args));
        (lines, crate::support::read_json(&summary))
    };
    let (records, summary) = receive(&["--type", "KiekerMetadata*"]);
    assert_eq!(records, expected()[..1]);
    assert_eq!(summary["records"], 1);
    assert_eq!(summary["records_received"], RECORDS);

    // The same moment as a number and as text; the end is excluded, timeless records are left out.
    let all = expected();
    let (since, until) = (1_283_156_546_000_000_000_i64, 1_283_156_550_500_000_000_i64);
    let wanted: Vec<&Value> = all
        .iter()
        .filter(|it| {
            it["timestamp"]
                .as_i64()
                .is_some_and(|it| (since..until).contains(&it))
        })
        .collect();
    assert!((1..RECORDS - 1).contains(&wanted.len()), "{}", wanted.len());
    let (records, _) = receive(&[
        "--since",
        "1283156546000000000",
        "--until",
        "2010-08-30T08:22:30.5Z",
    ]);
    assert_eq!(records.iter().collect::<Vec<_>>(), wanted);

    let (records, summary) = receive(&["--count", "100", "--operations"]);
    assert_eq!(records, all[..100]);
    assert_eq!(summary["ended_by"], "count");
    let calls = summary["operations"].as_array().unwrap();
    let counted: u64 = calls.iter().map(|it| it["count"].as_u64().unwrap()).sum();
    assert_eq!(counted, 99);
}
