//! The table of `docs/commands/waiting.md`: what a signal does to each command, by its source.
//!
//! A source with an end was cut short: 75. A source without one is followed: 0 if everything that
//! was taken is delivered.

use std::fs;
use std::net::TcpListener;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::observability::{get, sum};
use crate::support::{Background, Receiver, baler, file_uri, json, json_lines, output, wait_for};

/// The moment of the signal.
#[derive(Debug, Clone, Copy)]
enum When<'a> {
    /// The command has read this part of its source, in bytes.
    HasRead(u64),
    /// The command has written its port.
    Listens,
    /// A metric has this value at least.
    Metric(&'a str, f64),
    /// Standard output has something, and takes no more.
    Writes,
}

/// Waits for the moment.
fn wait(process: &mut Background, when: When<'_>, port: &Path) {
    let address = |what| wait_for(what, || fs::read_to_string(port).ok());
    match when {
        When::HasRead(bytes) => wait_for("it has read a part", || {
            let counts = fs::read_to_string(format!("/proc/{}/io", process.pid()));
            let counts = counts.expect("it has not ended");
            let read = counts.lines().find_map(|it| it.strip_prefix("rchar: "))?;
            (read.parse::<u64>().ok()? >= bytes).then_some(())
        }),
        When::Listens => drop(address("the port")),
        When::Metric(metric, value) => {
            let address = address("the address of metrics");
            wait_for(metric, || {
                (sum(&get(&address, "/metrics").1, metric) >= value).then_some(())
            });
        }
        When::Writes => process.wait_for_output(),
    }
}

#[test]
fn signals_end_every_command_with_the_code_of_the_table() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let text = |name: &str| path(name).to_str().unwrap().to_owned();
    let (large, small) = (file_uri(&path("large")), file_uri(&path("small")));
    for (to, records) in [(&large, "1M"), (&small, "1000")] {
        let made = ["generate", "--to", to, "--records", records];
        output(&[&made[..], &["--chunk-records", "100"]].concat());
    }
    let lines = text("lines");
    let log: String = (0..1_000_000).map(|n| format!("{{\"n\":{n}}}\n")).collect();
    fs::write(&lines, &log).unwrap();
    let few = text("few");
    fs::write(
        &few,
        (0..=100)
            .map(|n| format!("{{\"n\":{n}}}\n"))
            .collect::<String>(),
    )
    .unwrap();
    let (lines, followed) = (format!("jsonl:{lines}"), format!("jsonl:{few}?follow"));
    let small_followed = format!("{small}?follow");
    let port = text("port");
    let metrics = ["--metrics", "127.0.0.1:0", "--metrics-port-file", &port];
    let listening = ["--port-file", &*port];
    let tcp = "tcp://127.0.0.1:0";
    // More than a command reads before it opens its source.
    let part = When::HasRead(300_000);
    let delivered = |records| When::Metric("baler_records_delivered_total", records);
    let received = |records| When::Metric("baler_records_received_total", records);
    let rows: Vec<(Vec<&str>, &[&str], When<'_>, i32)> = vec![
        // What was asked for was not made.
        (
            vec![
                "generate",
                "--records",
                "1G",
                "--rate",
                "20k",
                "--to",
                "OUT",
            ],
            &metrics,
            delivered(1.0),
            75,
        ),
        // Sources with an end.
        (vec!["send", "--from", &large, "--to", "OUT"], &[], part, 75),
        (vec!["send", "--from", &lines, "--to", "OUT"], &[], part, 75),
        (
            vec!["replay", &large, "--to", "OUT", "--where", "eoi >= 0"],
            &[],
            part,
            75,
        ),
        (vec!["replay", "--check", &large], &[], part, 75),
        (
            vec!["receive", "--from", &large, "--format", "json"],
            &[],
            When::Writes,
            75,
        ),
        (vec!["analyze", "--from", &large], &[], part, 75),
        (vec!["inspect", &large, "--count", "1000000"], &[], part, 75),
        // Followed sources.
        (
            vec!["send", "--from", &small_followed, "--to", "OUT"],
            &metrics,
            delivered(1_000.0),
            0,
        ),
        (
            vec!["send", "--from", &followed, "--to", "OUT"],
            &metrics,
            delivered(101.0),
            0,
        ),
        (
            vec!["receive", "--from", &small, "--follow", "--format", "none"],
            &metrics,
            received(1_000.0),
            0,
        ),
        (
            vec!["relay", "--from", &small_followed, "--to", "OUT"],
            &metrics,
            When::Metric("baler_chunks_confirmed_total", 10.0),
            0,
        ),
        (
            vec!["receive", "--from", tcp, "--format", "none"],
            &listening,
            When::Listens,
            0,
        ),
        (
            vec!["relay", "--from", tcp, "--to", "OUT"],
            &listening,
            When::Listens,
            0,
        ),
        (vec!["analyze", "--from", tcp], &listening, When::Listens, 0),
        (vec!["inspect", tcp], &listening, When::Listens, 0),
        #[cfg(feature = "kafka")]
        (
            vec!["receive", "--from", "kafka+mock:t", "--format", "none"],
            &listening,
            When::Listens,
            0,
        ),
    ];
    for (number, (args, flags, when, code)) in rows.into_iter().enumerate() {
        let signal = ["HUP", "TERM", "INT"][number % 3];
        let out = file_uri(&path(&format!("out-{number}")));
        let args = args.iter().map(|it| if *it == "OUT" { &*out } else { it });
        let args: Vec<&str> = args.chain(flags.iter().copied()).collect();
        fs::remove_file(&port).ok();
        // A busy machine may need long for what was taken.
        let timeout = ["--shutdown-timeout", "60s"];
        let mut process = Background::start(&[&timeout[..], &args].concat());
        wait(&mut process, when, Path::new(&port));
        process.signal(signal);
        let (status, _, told) = process.end();
        assert_eq!(status.code(), Some(code), "{signal} {args:?}: {told}");
        println!("{signal} {args:?}: {code}");
    }
}

/// The records stay at their source: 75.
#[test]
fn a_signal_while_a_target_is_away_names_the_deadline() {
    let folder = tempfile::tempdir().unwrap();
    let from = file_uri(&folder.path().join("from"));
    output(&["generate", "--to", &from, "--records", "10k"]);
    let commands: [&[&str]; 2] = [
        &["send", "--from", &from],
        &["replay", &from, "--where", "eoi >= 0"],
    ];
    for command in commands {
        let settings = ["--shutdown-timeout", "1s", "--to", "tcp://127.0.0.1:1"];
        let mut process = Background::start(&[command, &settings].concat());
        process.wait_for_message("waiting for");
        process.signal("TERM");
        let (status, _, told) = process.end();
        assert_eq!(status.code(), Some(75), "{command:?}: {told}");
        let why = "send: the output took nothing more until the deadline";
        assert!(told.contains(why), "{command:?}: {told}");
    }
}

/// The rest of a source stays there, and everything that was taken is delivered: 75.
#[test]
fn a_signal_while_the_target_is_stalled_delivers_what_was_taken() {
    let folder = tempfile::tempdir().unwrap();
    let from = file_uri(&folder.path().join("from"));
    let made = ["generate", "--to", &from, "--records", "60k"];
    output(&[&made[..], &["--chunk-records", "10"]].concat());
    for command in ["relay", "replay"] {
        let folder = folder.path().join(command);
        let receiver = Receiver::start(&folder, &["--idle-timeout", "5m"]);
        receiver.process.signal("STOP");
        let port = folder.join("metrics");
        let mut args = vec!["--shutdown-timeout", "60s", command];
        args.extend(if command == "relay" {
            ["--from", &from]
        } else {
            ["--give-up=1m", &from]
        });
        args.extend(["--to", &receiver.uri, "--format", "json"]);
        args.extend([
            "--metrics",
            "0",
            "--metrics-port-file",
            port.to_str().unwrap(),
        ]);
        let mut process = Background::start(&args);
        wait(
            &mut process,
            When::Metric("baler_chunks_unconfirmed", 64.0),
            &port,
        );
        process.signal("TERM");
        let told = process.wait_for_message("draining");
        assert!(
            told.contains(" chunks left, until ") && told.contains(" UTC at most ("),
            "{told}"
        );
        receiver.process.signal("CONT");
        let (status, stdout, told) = process.end();
        assert_eq!(status.code(), Some(75), "{command}: {told}");
        let report: Value = serde_json::from_str(&stdout).unwrap();
        let sent = if command == "relay" {
            &report
        } else {
            &report["sent"]
        };
        assert_eq!(sent["given_back"], 0, "{report}");
        assert_eq!(sent["received"], sent["forwarded"], "{report}");
        assert!(sent["received"].as_u64().unwrap() < 6_000, "{report}");
        receiver.process.signal("TERM");
        receiver.succeed();
    }
}

/// Nobody waits for a target that does not answer.
#[test]
fn a_second_signal_ends_a_command_at_once() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let to = format!("tcp://{}", silent.local_addr().unwrap());
    for (name, number) in [("INT", 2), ("TERM", 15), ("HUP", 1)] {
        let args = ["generate", "--to", &to, "--records", "1000"];
        let mut process = Background::start(&[&args[..], &["--give-up", "10m"]].concat());
        process.wait_for_message("waiting for tcp:");
        process.signal(name);
        process.wait_for_message("draining, ");
        process.signal(name);
        let asked = Instant::now();
        let (status, _, _) = process.end();
        assert_eq!(status.code(), Some(128 + number), "{name}");
        assert!(asked.elapsed() < Duration::from_secs(2), "{name}");
    }
}

/// A command that was started to outlive its terminal does.
#[test]
fn a_hangup_that_was_ignored_before_stays_ignored() {
    let folder = tempfile::tempdir().unwrap();
    let (out, port) = (
        file_uri(&folder.path().join("out")),
        folder.path().join("port"),
    );
    let script = format!(
        "trap '' HUP; exec {} generate --to {out} --records 1G --rate 1k --metrics 0 \
         --metrics-port-file {}",
        env!("CARGO_BIN_EXE_baler"),
        port.display()
    );
    let mut process = Background::spawn(Command::new("sh").args(["-c", &script]));
    let emitted = |least| When::Metric("baler_records_emitted_total", least);
    wait(&mut process, emitted(1.0), &port);
    process.signal("HUP");
    let address = fs::read_to_string(&port).unwrap();
    let before = sum(&get(&address, "/metrics").1, "baler_records_emitted_total");
    wait(&mut process, emitted(before + 500.0), &port);
    process.signal("TERM");
    assert_eq!(process.end().0.code(), Some(75));
}

/// The limit of file sizes (`ulimit -f`) is a full disk, and no signal that kills.
#[test]
fn a_file_at_its_limit_is_a_full_disk() {
    let folder = tempfile::tempdir().unwrap();
    let text = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let from = file_uri(&folder.path().join("in"));
    output(&["generate", "--to", &from, "--records", "3000"]);
    let limited = |args: &str| {
        let script = format!("ulimit -f 40; exec {} {args}", env!("CARGO_BIN_EXE_baler"));
        let (status, stdout, told) =
            Background::spawn(Command::new("sh").args(["-c", &script])).end();
        assert_eq!(status.signal(), None, "{args}: {told}");
        (status.code().unwrap(), stdout, told)
    };
    let args = format!(
        "receive --from {from} --format json --output {} -q",
        text("out")
    );
    let (code, _, told) = limited(&args);
    assert_eq!(code, 74, "{told}");
    assert!(told.contains("File too large"), "{told}");
    // A spool keeps what it has, and goes on with another file or waits for room.
    let spool = text("spool");
    let args = format!(
        "generate --to tcp://127.0.0.1:1 --records 30000 --spool {spool} --spool-after 0ms \
         --give-up 2s --format json"
    );
    let (code, stdout, told) = limited(&args);
    assert!(matches!(code, 0 | 69), "{code}: {told}");
    let report: Value = serde_json::from_str(&stdout).unwrap();
    assert!(
        report["spool"]["disk_failures"].as_u64().unwrap() > 0,
        "{report}"
    );
    // A chunk is written again if the owner was told of the failure before its confirmation.
    let spooled = report["spool"]["spooled"].clone();
    let records = report["spooled"].as_u64().unwrap();
    let to = file_uri(&folder.path().join("to"));
    let next = ["generate", "--to", &to, "--records", "1", "--spool", &spool];
    let next = json(&[&next[..], &["--format", "json"]].concat());
    assert_eq!(next["spool"]["found"], spooled);
    let there = output(&["receive", "--from", &to, "--format", "json"]);
    // What the disk confirmed after the end counts as dropped, and is there all the same.
    let there = json_lines(&there).len() as u64;
    assert!(
        (records + 1..=30_001).contains(&there),
        "{there} of {records}"
    );
}

#[test]
fn a_time_beyond_all_records_selects_all_or_none() {
    for (flag, time) in [
        ("--until", "2300-01-01T00:00:00Z"),
        ("--since", "1600-01-01T00:00:00Z"),
    ] {
        baler(&["receive", "--from", "null:", "--format", "none", flag, time]).success();
    }
}
