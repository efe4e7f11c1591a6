//! Kieker's own writers before Baler's receivers, and Kieker's logs.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;

use serde_json::Value;

use crate::relay::RelayProcess;
use crate::support::{
    Background, baler, file_uri, json, json_lines, output, read_json, wait_for, workspace,
};

/// Connects and sends a stream of Kieker's socket writer, until the receiver closes.
fn send_as_kieker(address: &str) {
    let stream = fs::read(workspace(
        "connectors/kieker/tests/golden/tcp-single.stream",
    ))
    .unwrap();
    let mut connection = TcpStream::connect(address).unwrap();
    connection.write_all(&stream).unwrap();
    // The end may come as a reset.
    connection.read_to_end(&mut Vec::new()).ok();
}

#[test]
fn socket_writer_of_kieker_is_named_once_without_a_quarantine_and_counted() {
    for command in ["receive", "relay"] {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let text = |name: &str| path(name).to_str().unwrap().to_owned();
        let (port, output, summary) = (text("port"), text("out"), text("summary"));
        let mut args = vec![command, "--from", "tcp://127.0.0.1:0"];
        args.extend(["--port-file", &port, "--format", "json"]);
        match command {
            "receive" => args.extend(["--output", &output, "--summary", &summary]),
            _ => args.extend(["--to", "null:"]),
        }
        let mut process = Background::start(&args);
        let address = wait_for("the address", || fs::read_to_string(path("port")).ok());
        for _ in 0..3 {
            send_as_kieker(address.trim());
        }
        process.wait_for_message(
            "the peer is a socket writer of Kieker; receive it with kieker+tcp://127.0.0.1:0",
        );
        process.signal("TERM");
        let (status, stdout, stderr) = process.end();
        assert!(!stderr.contains("reason="), "it is said once: {stderr}");
        assert_eq!(status.code(), Some(65), "{stderr}");
        let (summary, name) = match command {
            "receive" => (read_json(&path("summary")), "quarantined"),
            _ => (serde_json::from_str(&stdout).unwrap(), "damaged"),
        };
        let told = summary[name].as_u64().unwrap();
        assert!(
            stderr.contains(&format!("count={told}")),
            "{command}: {stderr}"
        );
        // The signal can come before the last report.
        let unreported = summary["not_kept"]["unreported"].as_u64().unwrap_or(0);
        assert_eq!(told + unreported, 3, "{summary}");
    }
}

/// Returns a recorded stream of Kieker, and its records.
fn recorded() -> (Vec<u8>, Vec<Value>) {
    let data = |name: &str| fs::read(workspace("connectors/kieker/tests/data").join(name)).unwrap();
    let records = String::from_utf8(data("single-mixed.jsonl")).unwrap();
    (data("single-mixed.bin"), json_lines(&records))
}

/// Connects to the address in a file, as soon as it is there, and sends.
fn send_to(port: &Path, stream: &[u8]) {
    let address = wait_for("the address", || fs::read_to_string(port).ok());
    let mut connection = TcpStream::connect(address.trim()).unwrap();
    connection.write_all(stream).unwrap();
}

/// Returns the fields of a JSON line that belong to the record itself.
fn without_origin(mut line: Value) -> Value {
    let record = line.as_object_mut().unwrap();
    record.retain(|key, _| ["type", "timestamp", "fields"].contains(&key.as_str()));
    line
}

#[test]
fn senders_of_kieker_are_received_as_json() {
    let folder = tempfile::tempdir().unwrap();
    let port = folder.path().join("port");
    let (stream, expected) = recorded();
    let count = (2 * expected.len()).to_string();
    let mut args = vec!["receive", "--from", "kieker+tcp://127.0.0.1:0"];
    args.extend(["--port-file", port.to_str().unwrap(), "--format", "json"]);
    args.extend(["--count", &count]);
    let process = Background::start(&args);
    send_to(&port, &stream);
    send_to(&port, &stream);
    let (status, stdout, stderr) = process.end();
    assert!(status.success(), "{stderr}");
    let mut received: Vec<_> = json_lines(&stdout)
        .into_iter()
        .map(|line| without_origin(line).to_string())
        .collect();
    let twice = expected.iter().chain(&expected);
    let mut expected: Vec<_> = twice.map(Value::to_string).collect();
    received.sort();
    expected.sort();
    assert!(
        received == expected,
        "every record of both senders, unaltered"
    );
}

#[test]
fn senders_of_kieker_are_relayed_to_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let to = file_uri(&folder.path().join("chunks"));
    let (stream, expected) = recorded();
    let port = folder.path().join("relay-port");
    let relay = std::thread::scope(|scope| {
        scope.spawn(|| send_to(&port, &stream));
        RelayProcess::start("kieker+tcp://127.0.0.1:0", &to, folder.path(), &[])
    });
    let received = || {
        // The relay makes the folder when it opens its target.
        folder.path().join("chunks").exists().then_some(())?;
        let args = ["receive", "--from", &to, "--format", "json"];
        let lines = json_lines(&output(&args));
        let lines: Vec<_> = lines.into_iter().map(without_origin).collect();
        (lines.len() >= expected.len()).then_some(lines)
    };
    assert_eq!(wait_for("the records", received), expected);
    let (summary, code) = relay.end();
    assert_eq!(code, 0, "{summary}");
    assert_eq!(summary["received"], summary["forwarded"]);
}

#[test]
fn records_that_are_sent_as_kieker_sends_them_are_received() {
    let folder = tempfile::tempdir().unwrap();
    let port = folder.path().join("port");
    let mut args = vec!["receive", "--from", "kieker+tcp://127.0.0.1:0"];
    args.extend(["--port-file", port.to_str().unwrap(), "--format", "json"]);
    args.extend(["--count", "1000"]);
    let process = Background::start(&args);
    let address = wait_for("the address", || fs::read_to_string(&port).ok());
    let to = format!("kieker+tcp://{}", address.trim());
    let summary = json(&[
        "generate",
        "--to",
        &to,
        "--records",
        "1000",
        "--format",
        "json",
    ]);
    assert_eq!(summary["delivered"], 1_000, "{summary}");
    let (status, stdout, stderr) = process.end();
    assert!(status.success(), "{stderr}");
    assert_eq!(json_lines(&stdout).len(), 1_000);
}

#[test]
fn chunks_are_relayed_into_a_log_of_kieker_which_is_sent_on_unaltered() {
    let folder = tempfile::tempdir().unwrap();
    let chunks = file_uri(&folder.path().join("chunks"));
    let args = [
        "generate",
        "--to",
        &chunks,
        "--records",
        "3000",
        "--format",
        "json",
    ];
    let summary = json(&args);
    let received = |from: &str| {
        let lines = json_lines(&output(&["receive", "--from", from, "--format", "json"]));
        lines.into_iter().map(without_origin).collect::<Vec<_>>()
    };
    let expected = received(&chunks);
    assert_eq!(summary["delivered"], expected.len(), "{summary}");
    let logs = folder.path().join("logs");
    let to = format!("kieker-log:{}?max_entries=1000", logs.display());
    let relayed = json(&["relay", "--from", &chunks, "--to", &to, "--format", "json"]);
    assert_eq!(relayed["received"], relayed["forwarded"], "{relayed}");
    let log = fs::read_dir(&logs).unwrap().next().unwrap().unwrap().path();
    let files = fs::read_dir(&log).unwrap().count();
    assert!(files > 3, "a map and several files: {files}");
    let again = file_uri(&folder.path().join("again"));
    let from = format!("kieker-log:{}", log.display());
    output(&["send", "--from", &from, "--to", &again]);
    assert_eq!(received(&again), expected);
}

fn append(path: &Path, text: &str) {
    let file = fs::OpenOptions::new().append(true).create(true).open(path);
    file.unwrap().write_all(text.as_bytes()).unwrap();
}

#[test]
fn binary_log_goes_to_every_command_as_any_other_medium() {
    let log = workspace("connectors/kieker/tests/data/logs/binary-BZip2");
    let expected = fs::read_to_string(workspace("connectors/kieker/tests/data/logs.jsonl"));
    let expected: Vec<_> = json_lines(&expected.unwrap());
    let folder = tempfile::tempdir().unwrap();
    let to = file_uri(&folder.path().join("chunks"));
    let from = format!("kieker-log:{}", log.display());
    output(&["relay", "--from", &from, "--to", &to]);
    for uri in [&from, &to] {
        let received = json_lines(&output(&["receive", "--from", uri, "--format", "json"]));
        let heads = |lines: &[Value]| -> Vec<_> {
            let heads = lines
                .iter()
                .map(|it| (it["type"].clone(), it["timestamp"].clone()));
            heads.collect()
        };
        // The connector's tests compare the fields.
        assert_eq!(heads(&received), heads(&expected), "{uri}");
    }
    let inspected: Value =
        serde_json::from_str(&output(&["inspect", &from, "--format", "json"])).unwrap();
    assert_eq!(inspected["broken"], serde_json::json!([]));
    assert_eq!(inspected["chunks"].as_array().unwrap().len(), 1);
}

/// A relay is killed at any time and started again, while a log is written and rotated. It passes
/// on every record, and only unsettled records twice.
#[test]
fn a_killed_follower_of_a_log_goes_on_where_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    fs::create_dir(&log).unwrap();
    let class = "kieker.common.record.misc.TimestampRecord";
    append(&log.join("kieker.map"), &format!("$1={class}\n"));
    let position = folder.path().join("log.position");
    let from = format!("kieker-log:{}?follow", log.display());
    let mut next = 0;
    let mut write = |file: u32, records: u64| {
        let text: String = (next..next + records)
            .map(|n| format!("$1;-1;{n}\n"))
            .collect();
        append(&log.join(format!("kieker-{file}.dat")), &text);
        next += records;
        next
    };
    write(0, 100);
    for run in 0..6 {
        let to = file_uri(&folder.path().join(format!("out-{run}")));
        let before = fs::read_to_string(&position).unwrap_or_default();
        let mut relay = Background::start(&["relay", "--from", &from, "--to", &to]);
        write(run / 2, 300);
        wait_for("a position", || {
            let now = fs::read_to_string(&position).ok()?;
            (now != before).then_some(())
        });
        write(run / 2 + run % 2, 3_000);
        assert!(relay.is_running());
        relay.signal("KILL");
        relay.end();
    }
    let written = write(3, 50);
    let to = file_uri(&folder.path().join("out-last"));
    output(&[
        "relay",
        "--from",
        &from,
        "--to",
        &to,
        "--idle-timeout",
        "2s",
    ]);
    let mut received = Vec::new();
    for run in ["0", "1", "2", "3", "4", "5", "last"] {
        let from = file_uri(&folder.path().join(format!("out-{run}")));
        let lines = json_lines(&output(&["receive", "--from", &from, "--format", "json"]));
        let numbers = lines
            .iter()
            .map(|line| line["fields"]["timestamp"].as_u64());
        received.extend(numbers.map(Option::unwrap));
    }
    received.sort_unstable();
    received.dedup();
    assert_eq!(received, (0..written).collect::<Vec<_>>());

    // When nothing is in flight, nothing comes twice.
    let again = output(&[
        "receive",
        "--from",
        &from,
        "--idle-timeout",
        "1s",
        "--format",
        "json",
    ]);
    assert_eq!(again, "");
}

#[test]
fn chunks_with_types_of_ones_own_are_read_with_their_schema() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (lines, schema, to) = (path("orders.jsonl"), path("own.irl"), path("chunks"));
    let order = r#"{"type":"app.OrderEvent","id":1,"item":"tea","price":0.5}"#;
    fs::write(&lines, format!("{order}\n")).unwrap();
    let event = "package app\nevent OrderEvent { string type long id string item double price }";
    fs::write(&schema, event).unwrap();
    let to = file_uri(Path::new(&to));
    let from = format!("jsonl:{lines}");
    let send = ["send", "--from", &from, "--container", "kieker"];
    baler(&[&send[..], &["--to", &to]].concat()).success();

    let receive = |consumer: &str, flags: &[&str]| {
        let from = format!("{to}?consumer={consumer}");
        baler(&[&["receive", "--format", "json", "--from", &from], flags].concat())
    };
    let told = receive("without", &[]).code(65).get_output().stderr.clone();
    let told = String::from_utf8(told).unwrap();
    assert!(told.contains("app.OrderEvent"), "{told}");
    assert!(told.contains("--schemas PATH"), "{told}");

    let read = receive("with", &["--schemas", &schema]).success();
    let read: Value = serde_json::from_slice(&read.get_output().stdout).unwrap();
    assert_eq!(read["fields"].to_string(), order);
    let folder_of_schemas = folder.path().to_str().unwrap();
    receive("folder", &["--schemas", folder_of_schemas]).success();

    fs::write(&schema, "event OrderEvent {").unwrap();
    let told = receive("wrong", &["--schemas", &schema]).code(78);
    let told = String::from_utf8(told.get_output().stderr.clone()).unwrap();
    assert!(told.contains("own.irl:1:1: "), "{told}");
}

#[test]
fn logs_with_types_of_ones_own_are_read_with_schemas() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (log, types) = (path("log"), path("own types"));
    fs::create_dir_all(folder.path().join("own types/shop")).unwrap();
    let event = "package app event OrderEvent { long id string item }";
    fs::write(folder.path().join("own types/shop/own.irl"), event).unwrap();
    fs::create_dir(&log).unwrap();
    fs::write(folder.path().join("log/kieker.map"), "$0=app.OrderEvent\n").unwrap();
    fs::write(folder.path().join("log/kieker-1.dat"), "$0;5;1;tea\n").unwrap();
    let from = format!("kieker-log:{log}");
    for command in ["relay", "send"] {
        let to = file_uri(Path::new(&path(command)));
        let copy = [command, "--from", &from, "--to", &to, "--schemas", &types];
        baler(&copy).success();
        let read = baler(&["receive", "--format", "json", "--from", &to]).success();
        let read: Value = serde_json::from_slice(&read.get_output().stdout).unwrap();
        assert_eq!(
            read["fields"].to_string(),
            r#"{"id":1,"item":"tea"}"#,
            "{command}"
        );
    }
    let missing = path("missing");
    let told = baler(&["receive", "--from", &from, "--schemas", &missing]).code(78);
    let told = String::from_utf8(told.get_output().stderr.clone()).unwrap();
    assert!(
        told.contains("cannot open") && told.contains("missing"),
        "{told}"
    );
}

#[test]
fn strings_that_a_text_log_cannot_hold_are_counted_and_said() {
    let folder = tempfile::tempdir().unwrap();
    let class = "kieker.common.record.remotecontrol.ActivationEvent";
    fs::write(folder.path().join("kieker.map"), format!("$0={class}\n")).unwrap();
    let records = "$0;1;two\nlines\n$0;2;plain\n$0;3;C:\\\n";
    fs::write(folder.path().join("kieker-1.dat"), records).unwrap();
    let from = format!("kieker-log:{}", folder.path().display());
    for (format, altered) in [("text", 2), ("binary", 0)] {
        let to = format!(
            "kieker-log:{}?format={format}",
            folder.path().join(format).display()
        );
        for command in ["send", "relay"] {
            let args = [command, "--from", &from, "--to", &to, "--format", "json"];
            let run = baler(&args).success();
            let document: Value = serde_json::from_slice(&run.get_output().stdout).unwrap();
            assert_eq!(document["altered"], altered, "{command}: {document}");
            let told = String::from_utf8_lossy(&run.get_output().stderr).into_owned();
            let is_said = told.contains("2 values are not in the target as they are");
            assert_eq!(is_said, altered > 0, "{command}: {told}");
        }
    }
}

#[test]
fn times_in_milliseconds_are_analyzed_as_such() {
    let log = workspace("connectors/kieker/tests/data/milliseconds");
    let log = format!("kieker-log:{}", log.display());
    let document = json(&["analyze", "--from", &log, "--format", "json"]);
    let first = &document["traces"]["first_unix_ns"];
    assert_eq!(first, 1_700_000_000_001_000_000_i64, "{document}");
    let operations = document["operations"].as_array().unwrap();
    let durations: Vec<_> = operations.iter().map(|it| &it["mean_ns"]).collect();
    assert_eq!(durations, [4_000_000.0, 2_000_000.0], "{document}");
}
