//! JSON lines of files and of standard input, sent and received again.

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::{Background, baler, command, file_uri, json, json_lines, output, wait_for};

fn append(path: &Path, text: &str) {
    let mut file = OpenOptions::new()
        .append(true)
        .create(true)
        .open(path)
        .unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

#[test]
fn lines_come_back_and_what_is_no_line_goes_to_the_quarantine() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let lines = [
        r#"{"type":"login","user":"ada","at":{"id":18446744073709551616}}"#,
        r#"{"type":"login","user":null,"tags":["a",1]}"#,
        r#"{"level":"info","ms":0.25}"#,
    ];
    append(&path("log"), &format!("{}\nno JSON\n", lines.join("\n")));
    let aside = path("aside");
    let (from, to) = (
        format!("jsonl:{}", path("log").display()),
        file_uri(&path("out")),
    );
    let args = ["send", "--from", &from, "--to", &to, "--format", "json"];
    let aside_args = ["--quarantine", aside.to_str().unwrap()];
    let run = baler(&[&args[..], &aside_args].concat()).code(65);
    let report: serde_json::Value = serde_json::from_slice(&run.get_output().stdout).unwrap();
    assert_eq!(report["source"]["records"], 3);
    assert_eq!(report["source"]["bad_lines"], json!({"not_json": 1}));
    let kept = fs::read_dir(&aside).unwrap().map(|it| it.unwrap().path());
    let kept: Vec<_> = kept
        .filter_map(|path| fs::read(path).ok())
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        .collect();
    assert!(kept.iter().any(|bytes| bytes == "no JSON"), "{kept:?}");
    let offset = lines.iter().map(|line| line.len() + 1).sum::<usize>();
    let offset = offset.to_string();
    assert!(kept.iter().any(|it| it.contains(&offset)), "{kept:?}");

    let received = output(&["receive", "--from", &to, "--format", "json"]);
    let names = json_lines(&received).into_iter();
    let names: Vec<_> = names.map(|line| line["type"].clone()).collect();
    assert_eq!(names, ["login", "login", "json"]);
    for (line, sent) in received.lines().zip(lines) {
        assert!(line.ends_with(&format!("\"fields\":{sent}}}")), "{line}");
    }
}

#[test]
fn standard_input_is_sent_with_types_from_the_field_that_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let to = file_uri(folder.path());
    let mut send = command();
    send.args(["send", "--from", "jsonl:-?type=kind", "--to", &to]);
    let mut send = assert_cmd::Command::from_std(send);
    send.write_stdin("{\"kind\":\"a\",\"n\":1}\n{\"kind\":\"b\",\"n\":2}")
        .assert()
        .success();
    let received = json_lines(&output(&["receive", "--from", &to, "--format", "json"]));
    let names: Vec<_> = received.iter().map(|line| &line["type"]).collect();
    assert_eq!(names, ["a", "b"]);
}

#[test]
fn settings_that_standard_input_cannot_have_are_refused() {
    for setting in ["follow", "position=file"] {
        let from = format!("jsonl:-?{setting}");
        let run = baler(&["send", "--from", &from, "--to", "null:"]).code(78);
        let stderr = String::from_utf8_lossy(&run.get_output().stderr).into_owned();
        assert!(
            stderr.contains("standard input has no position"),
            "{stderr}"
        );
    }
}

/// Lines that come more slowly than the clock is looked at for each still keep the sender from
/// being idle.
#[test]
fn a_slow_log_is_not_idle() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("app.log");
    let position = folder.path().join("app.log.position");
    append(&log, "");
    let from = format!("jsonl:{}?follow", log.display());
    let send = [
        "send",
        "--from",
        &from,
        "--to",
        "null:",
        "--idle-timeout",
        "3s",
    ];
    let sender = Background::start(&send);
    let begun = Instant::now();
    let mut saved = String::new();
    while begun.elapsed() < Duration::from_secs(5) {
        append(&log, "{}\n");
        saved = wait_for("a position", || {
            fs::read_to_string(&position)
                .ok()
                .filter(|now| *now != saved)
        });
    }
    assert!(sender.succeed().contains("delivered"));
}

/// A sender is killed at any time and started again, while a log is written and rotated. It sends
/// every line, and only unconfirmed lines twice.
#[test]
fn a_killed_follower_goes_on_where_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("app.log");
    let position = folder.path().join("app.log.position");
    let from = format!("jsonl:{}?follow", log.display());
    let mut next = 0;
    let mut write = |lines: u64| {
        let text: String = (next..next + lines)
            .map(|n| format!("{{\"n\":{n}}}\n"))
            .collect();
        append(&log, &text);
        next += lines;
        next
    };
    write(100);
    for run in 0..6 {
        let to = file_uri(&folder.path().join(format!("out-{run}")));
        let before = fs::read_to_string(&position).unwrap_or_default();
        let mut sender = Background::start(&["send", "--from", &from, "--to", &to]);
        write(300);
        wait_for("a position", || {
            let now = fs::read_to_string(&position).ok()?;
            (now != before).then_some(())
        });
        if run % 2 == 1 {
            fs::rename(&log, folder.path().join(format!("app.log.{}", 9 - run))).unwrap();
        }
        write(700);
        assert!(sender.is_running());
        sender.signal("KILL");
        sender.end();
    }
    let written = write(50);
    let to = file_uri(&folder.path().join("out-last"));
    // Longer than it waits for the last writer of a file that was rotated.
    let last = ["send", "--from", &from, "--to", &to, "--idle-timeout", "8s"];
    let report = json(&[&last[..], &["--format", "json"]].concat());
    assert_eq!(report["source"]["lost"], 0);
    let mut received = BTreeSet::new();
    for run in ["0", "1", "2", "3", "4", "5", "last"] {
        let from = file_uri(&folder.path().join(format!("out-{run}")));
        let lines = output(&["receive", "--from", &from, "--format", "json"]);
        for line in json_lines(&lines) {
            let number = line["fields"]["n"].as_u64();
            received.insert(number.unwrap_or_else(|| panic!("{line}")));
        }
    }
    let missing: Vec<_> = (0..written).filter(|n| !received.contains(n)).collect();
    assert!(missing.is_empty(), "{missing:?}");
    assert_eq!(received.len() as u64, written);
}
