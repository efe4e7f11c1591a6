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

/// Connects and sends what a socket writer of Kieker sends, until the receiver closes.
fn send_as_kieker(address: &str) {
    let stream = fs::read(workspace("common/tests/golden/kieker/tcp-single.stream")).unwrap();
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
        process.wait_for_message("if it is a socket writer of Kieker");
        process.signal("TERM");
        let (status, stdout, stderr) = process.end();
        assert!(!stderr.contains("reason="), "it is said once: {stderr}");
        assert!(stderr.contains("count=3"), "{command}: {stderr}");
        assert_eq!(status.code(), Some(65), "{stderr}");
        let (summary, name) = match command {
            "receive" => (read_json(&path("summary")), "quarantined"),
            _ => (serde_json::from_str(&stdout).unwrap(), "damaged"),
        };
        assert_eq!(summary[name], 3, "{summary}");
    }
}

#[test]
fn compressed_log_is_refused_with_the_command_that_decompresses_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::write(
        path("kieker.map"),
        "$1=kieker.common.record.misc.EmptyRecord\n",
    )
    .unwrap();
    fs::write(path("kieker-1.gz"), b"BZh91AY&SY").unwrap();
    let from = format!("kieker-log:{}", folder.path().display());
    let refused = baler(&["send", "--from", &from, "--to", "null:"]);
    let refused = refused.code(69);
    let stderr = String::from_utf8_lossy(&refused.get_output().stderr).into_owned();
    let advice = format!(
        "bzip2 -dc < {:?} > {:?}",
        path("kieker-1.gz"),
        path("kieker-1.dat")
    );
    assert!(stderr.contains(&advice), "{stderr}");
}

/// A recorded stream of Kieker, and its records.
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

/// What a JSON line has of the record itself.
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
