//! Media that are away, or move nothing: the messages, the time of giving up, and the idle timeout.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::num::NonZeroU16;
use std::process::Command;
use std::thread;

use baler_connector_kafka::EmbeddedCluster;
use baler_connector_testkit::hostile::{Hello, SENDER};
use serde_json::Value;

use crate::support::{Background, Receiver, baler, command, file_uri, json, read_json};

/// Returns an address at which no process listens.
fn nobody() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().to_string()
}

/// Returns the lines that begin like this.
fn lines<'a>(text: &'a str, begin: &str) -> Vec<&'a str> {
    text.lines()
        .filter(|line| line.starts_with(begin))
        .collect()
}

#[test]
fn every_command_tells_of_a_broker_that_is_away_once_and_gives_it_up() {
    let folder = tempfile::tempdir().unwrap();
    let from_log = file_uri(&folder.path().join("chunks"));
    json(&[
        "generate",
        "--to",
        &from_log,
        "--records",
        "10",
        "--format",
        "json",
    ]);
    let nobody = nobody();
    let kafka = format!("kafka://{nobody}/records");
    let amqp = format!("amqp://{nobody}/v?queue=records");
    let tcp = format!("tcp://{nobody}");
    // Some read from a medium that is away, some write to it.
    let cases: &[(&str, &[&str])] = &[
        (
            &kafka,
            &["receive", "--from", &kafka, "--idle-timeout", "1s"],
        ),
        (&amqp, &["receive", "--from", &amqp, "--workers", "2"]),
        (&kafka, &["inspect", &kafka]),
        (&kafka, &["replay", "--check", &kafka]),
        (&kafka, &["tap", &kafka]),
        (&amqp, &["relay", "--from", &amqp, "--to", "null:"]),
        (
            &amqp,
            &[
                "send",
                "--from",
                &amqp,
                "--to",
                "null:",
                "--idle-timeout",
                "1s",
            ],
        ),
        (&tcp, &["relay", "--from", &from_log, "--to", &tcp]),
        (&tcp, &["replay", &from_log, "--to", &tcp]),
        (&kafka, &["generate", "--records", "1000", "--to", &kafka]),
    ];
    let runs: Vec<_> = cases
        .iter()
        .map(|(_, args)| Background::start(&[*args, &["--give-up", "6s"]].concat()))
        .collect();
    for ((endpoint, args), run) in cases.iter().zip(runs) {
        let (status, _, told) = run.end();
        assert_eq!(status.code(), Some(69), "{args:?}: {told}");
        let waits = lines(&told, &format!("waiting for {endpoint} for "));
        assert_eq!(waits.len(), 1, "{args:?}: {told}");
        assert!(
            waits[0].ends_with("it is given up after 6s (--give-up)"),
            "{told}"
        );
        let end = lines(&told, &format!("error: gave up on {endpoint} after "));
        assert_eq!(end.len(), 1, "{args:?}: {told}");
        assert!(!told.contains("is back"), "{args:?}: {told}");
    }
}

#[test]
fn chunks_that_are_given_up_together_are_told_of_together() {
    let to = format!("tcp://{}", nobody());
    let run = |more: &[&str]| {
        let args = [
            "generate",
            "--to",
            &to,
            "--records",
            "5000",
            "--give-up",
            "4s",
        ];
        let chunks = ["--chunk-records", "10"];
        let assert = baler(&[args.as_slice(), &chunks, more].concat()).code(69);
        String::from_utf8(assert.get_output().stderr.clone()).unwrap()
    };
    let told = run(&[]);
    assert_eq!(lines(&told, "waiting for ").len(), 1, "{told}");
    let lost = told
        .lines()
        .filter(|line| line.contains("given up") && line.contains("chunks="));
    assert!((1..=2).contains(&lost.count()), "{told}");
    let quiet = run(&["--quiet"]);
    assert!(
        quiet.starts_with("error: gave up on ") && quiet.lines().count() == 1,
        "{quiet}"
    );
}

#[test]
fn a_receiver_that_comes_back_is_told_of() {
    let folder = tempfile::tempdir().unwrap();
    let first = Receiver::start(folder.path(), &["--idle-timeout", "1h"]);
    let uri = first.uri.clone();
    drop(first);
    let mut sender = Background::start(&["generate", "--to", &uri, "--records", "1000"]);
    sender.wait_for_message(&format!("waiting for {uri} for "));
    let receiver = Receiver::at(&uri, &folder.path().join("second"), &["--count", "1000"]);
    sender.wait_for_message(&format!("{uri} is back after "));
    sender.succeed();
    receiver.succeed();
}

#[test]
fn a_relay_tells_of_a_sink_that_is_away_behind_its_spool_and_of_a_source_without_senders() {
    let folder = tempfile::tempdir().unwrap();
    let spool = folder.path().join("spool");
    let to = format!("tcp://{}", nobody());
    let mut relay = Background::start(&[
        "relay",
        "--from",
        "tcp://127.0.0.1:0",
        "--to",
        &to,
        "--spool",
        spool.to_str().unwrap(),
    ]);
    let told = [(); 2].map(|()| relay.wait_for_message("waiting for "));
    let has = |begin: &str, end: &str| {
        let mut lines = told.iter().map(|line| line.trim_end());
        lines.any(|line| line.starts_with(begin) && line.ends_with(end))
    };
    assert!(
        has(
            &format!("waiting for {to} for "),
            "; chunks go to the spool"
        ),
        "{told:?}"
    );
    let no_sender = ": no sender yet; the wait has no limit (--give-up sets one)";
    assert!(
        has("waiting for tcp://127.0.0.1:0 for ", no_sender),
        "{told:?}"
    );
}

/// A disk that takes nothing can be opened again and again: before, each opening started the clock
/// again, and `--give-up 3s` lasted 39 s. A spool on such a disk is no way out either.
#[test]
fn a_disk_that_takes_nothing_is_given_up_in_time() {
    let folder = tempfile::tempdir().unwrap();
    let full = file_uri(&folder.path().join("full"));
    let away = format!("tcp://{}", nobody());
    let spool = folder.path().join("spool");
    let spool = ["--spool", spool.to_str().unwrap()];
    for (to, more) in [(&full, &[] as &[&str]), (&away, &spool)] {
        let mut run = Command::new("bash");
        // No file may be larger than 1 KiB.
        let limited = "trap '' XFSZ; ulimit -f 1; exec \"$0\" \"$@\"";
        run.args(["-c", limited]).arg(command().get_program());
        run.args(["generate", "--to", to, "--records", "100000"]);
        run.args(["--chunk-records", "1000", "--give-up", "3s"]);
        let output = run.args(more).output().unwrap();
        let told = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(69), "{told}");
        let end = lines(&told, &format!("error: gave up on {to} after "));
        let waited = end[0].split(" after ").nth(1);
        let waited = waited.and_then(|rest| rest.split(' ').next());
        let waited: u64 = waited.unwrap().parse().unwrap();
        assert!((3..=20).contains(&waited), "{told}");
        assert!(told.contains("large"), "{told}");
    }
}

/// A peer with which connecting works and delivering does not: it closes after each frame.
#[test]
fn a_receiver_that_closes_after_each_frame_is_given_up_in_time() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let to = format!("tcp://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let answer = Hello { role: 2, ..SENDER };
            // A hello, the header of a frame and a bit of it.
            let heard = stream.read_exact(&mut [0; 40]);
            let said = heard.and_then(|()| stream.write_all(&answer.bytes()));
            said.and_then(|()| stream.read_exact(&mut [0; 50])).ok();
        }
    });
    let run = ["generate", "--to", &to, "--records", "1000"];
    let run = baler(&[&run[..], &["--give-up", "3s"]].concat()).code(69);
    let told = String::from_utf8(run.get_output().stderr.clone()).unwrap();
    let end = lines(&told, &format!("error: gave up on {to} after "));
    assert_eq!(end.len(), 1, "{told}");
}

#[test]
fn a_new_group_reads_everything_before_it_is_idle() {
    let cluster = EmbeddedCluster::with_brokers(NonZeroU16::MIN).unwrap();
    cluster.create_topic("records", 4, 1).unwrap();
    let uri = format!("kafka://{}/records", cluster.bootstrap_servers());
    json(&[
        "generate",
        "--to",
        &uri,
        "--records",
        "5000",
        "--format",
        "json",
    ]);
    let folder = tempfile::tempdir().unwrap();
    let summary = folder.path().join("summary.json");
    // Joining takes longer than this.
    let idle = [
        "--idle-timeout",
        "100ms",
        "--give-up",
        "1m",
        "--format",
        "none",
    ];
    let receive = [
        "receive",
        "--from",
        &uri,
        "--summary",
        summary.to_str().unwrap(),
    ];
    let told = baler(&[receive.as_slice(), &idle].concat()).success();
    let told = String::from_utf8(told.get_output().stderr.clone()).unwrap();
    let summary: Value = read_json(&summary);
    assert_eq!(summary["records"], 5_000, "{told}");
    assert_eq!(summary["ended_by"], "idle_timeout");

    let to = file_uri(&folder.path().join("relayed"));
    let from = format!("{uri}?group.id=relay");
    let relay = ["relay", "--from", &from, "--to", &to, "--format", "json"];
    let relayed = json(&[relay.as_slice(), &["--idle-timeout", "100ms"]].concat());
    assert_eq!(relayed["received"], relayed["forwarded"]);
    assert!(relayed["received"].as_u64().unwrap() > 0, "{relayed}");
    assert!(fs::read_dir(folder.path().join("relayed")).is_ok());
}
