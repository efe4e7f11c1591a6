//! Lines of files, of pipes and of standard input, sent and received again.

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::support::{
    Background, Receiver, baler, command, file_uri, json, json_lines, output, wait_for,
};

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
    assert_eq!(report["source"]["counts"]["not_a_record"], 1);
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
fn chunks_of_lines_are_compressed_unless_a_flag_says_otherwise() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    let lines = (0..99).map(|number| format!("{{\"text\":\"line {number} of a log\"}}\n"));
    append(&log, &lines.collect::<String>());
    let cases: [(_, &[&str], _); 3] = [
        ("text", &[], "zstd"),
        ("jsonl", &[], "zstd"),
        ("text", &["--compression", "none"], "none"),
    ];
    for (number, (scheme, flags, compression)) in cases.into_iter().enumerate() {
        let from = format!("{scheme}:{}", log.display());
        let to = folder.path().join(number.to_string());
        let args = ["send", "--from", &from, "--to", &file_uri(&to)];
        output(&[&args[..], flags].concat());
        let document = json(&["inspect", to.to_str().unwrap(), "--format", "json"]);
        assert_eq!(
            document["chunks"][0]["compression"], compression,
            "{flags:?}"
        );
    }
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
    assert_eq!(report["source"]["counts"]["losses"], 0);
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

/// Returns the fields of all records of a folder of chunks.
fn fields(to: &str) -> Vec<String> {
    let lines = output(&["receive", "--from", to, "--format", "lines"]);
    lines.lines().map(str::to_owned).collect()
}

#[test]
fn what_programs_leave_around_lines_costs_no_line() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("app.log");
    let lines = b"\xef\xbb\xbf{\"n\":1}\r\n{\"n\":2}\r\n\0\0{\"n\":3,\"msg\":\"cut \\ud83d\"}\n";
    fs::write(&log, lines).unwrap();
    let (from, to) = (
        format!("jsonl:{}", log.display()),
        file_uri(&folder.path().join("out")),
    );
    output(&["send", "--from", &from, "--to", &to]);
    assert_eq!(
        fields(&to),
        [
            "{\"n\":1}",
            "{\"n\":2}",
            "{\"n\":3,\"msg\":\"cut \\ud83d\"}"
        ]
    );
}

#[test]
fn half_a_line_stays_for_the_next_run() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let from = format!(
        "jsonl:{}?position={}",
        path("log").display(),
        path("p").display()
    );
    let to = file_uri(&path("out"));
    for part in ["{\"n\":1}\n{\"n\":", "2}\n{\"n\":3}\n"] {
        append(&path("log"), part);
        output(&["send", "--from", &from, "--to", &to]);
    }
    assert_eq!(fields(&to), ["{\"n\":1}", "{\"n\":2}", "{\"n\":3}"]);
}

/// Every command that reads chunks reads lines, and a line of text comes back as it was.
#[test]
fn lines_are_a_medium() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    append(&path("log"), "  a \"b\"\nc\n");
    let from = format!("text:{}", path("log").display());
    assert_eq!(
        output(&["receive", "--from", &from, "--format", "lines"]),
        "  a \"b\"\nc\n"
    );
    let to = file_uri(&path("out"));
    output(&["relay", "--from", &from, "--to", &to]);
    assert_eq!(fields(&to), ["  a \"b\"", "c"]);
    let inspected = json(&["inspect", &from, "--format", "json"]);
    assert_eq!(inspected["chunks"][0]["records"], 2);
    let tapped = [
        "tap",
        &from,
        "--from-start",
        "--count",
        "2",
        "--format",
        "json",
    ];
    assert_eq!(json_lines(&output(&tapped)).len(), 2);
    assert!(
        !path("log.position").exists(),
        "nobody asked for a position"
    );
    let origin = format!("{from}?origin");
    let lines = json_lines(&output(&["receive", "--from", &origin, "--format", "json"]));
    assert_eq!(lines[1]["fields"]["origin_offset"], 8);
}

#[test]
fn a_line_that_was_put_aside_can_be_sent_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    append(&path("log"), "{\"n\":1}\n{\"n\":2,\"long\":true}\n");
    let from = format!("jsonl:{}?max_line_bytes=10", path("log").display());
    let (to, aside) = (file_uri(&path("out")), path("aside"));
    let aside = aside.to_str().unwrap();
    let args = [
        "send",
        "--from",
        &from,
        "--to",
        &to,
        "--quarantine",
        aside,
        "--format",
        "json",
    ];
    let run = baler(&args).code(65);
    let report: serde_json::Value = serde_json::from_slice(&run.get_output().stdout).unwrap();
    assert_eq!(report["source"]["counts"]["too_long"], 1);
    output(&["replay", aside, "--to", &to]);
    assert_eq!(fields(&to), ["{\"n\":1}", "{\"n\":2,\"long\":true}"]);
}

#[test]
fn a_followed_pipe_outlives_its_writer() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    let to = file_uri(&folder.path().join("out"));
    let from = format!("jsonl:{}?follow", pipe.display());
    let mut sender = Background::start(&["send", "--from", &from, "--to", &to]);
    for line in ["{\"n\":1}\n", "{\"n\":2}\n"] {
        // Opening waits for a reader.
        append(&pipe, line);
        wait_for("the line", || {
            let received = baler(&["receive", "--from", &to, "--format", "lines"]);
            let lines = String::from_utf8_lossy(&received.get_output().stdout).into_owned();
            lines.ends_with(line).then_some(())
        });
        assert!(sender.is_running());
    }
    sender.signal("TERM");
    sender.succeed();
}

/// As logrotate does: the new file belongs to another user for a moment.
#[test]
fn a_new_file_that_cannot_be_read_yet_is_waited_for() {
    use std::os::unix::fs::PermissionsExt as _;

    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let allow = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    allow(folder.path(), 0o777);
    let from = format!("jsonl:{}?follow", path("log").display());
    append(&path("log"), "{\"n\":1}\n");
    allow(&path("log"), 0o644);
    let args = ["send", "--from", &from, "--to", &file_uri(&path("out"))];
    // Root may read everything.
    let is_root = fs::metadata("/proc/self").is_ok_and(|it| {
        use std::os::unix::fs::MetadataExt as _;
        it.uid() == 0
    });
    let mut command = command();
    if is_root {
        fs::copy(env!("CARGO_BIN_EXE_baler"), path("baler")).unwrap();
        command = std::process::Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
        command.arg(path("baler"));
    }
    let mut sender = Background::spawn(command.args(args));
    let position = || fs::read_to_string(path("log.position")).unwrap_or_default();
    wait_for("the first line", || {
        position().contains("\"offset\":8").then_some(())
    });
    fs::rename(path("log"), path("log.1")).unwrap();
    append(&path("new"), "{\"n\":2}\n");
    allow(&path("new"), 0);
    fs::rename(path("new"), path("log")).unwrap();
    sender.wait_for_message("cannot be read yet");
    assert!(sender.is_running());
    allow(&path("log"), 0o644);
    wait_for("the second line", || {
        (position().matches("\"offset\":8").count() == 2).then_some(())
    });
    sender.signal("TERM");
    sender.succeed();
    assert_eq!(fields(&file_uri(&path("out"))), ["{\"n\":1}", "{\"n\":2}"]);
}

/// A log is rotated again and again while its target is away for a time.
#[test]
fn a_log_that_is_rotated_while_its_target_is_away_arrives_whole() {
    rotate_while_the_target_is_away(Rotations {
        count: 20,
        interval: Duration::from_millis(400),
        parts: 1,
        lines: 2_000,
        away: 0..12,
    });
}

/// 4,000 lines a second for a minute, rotated every 3 s, while the target is away for 21 s.
#[test]
fn a_busy_log_that_is_rotated_for_a_minute_arrives_whole() {
    rotate_while_the_target_is_away(Rotations {
        count: 20,
        interval: Duration::from_secs(3),
        parts: 60,
        lines: 12_000,
        away: 5..12,
    });
}

/// The life of a log.
struct Rotations {
    count: usize,
    interval: Duration,
    /// How often lines are written between two rotations.
    parts: u32,
    /// The lines between two rotations.
    lines: u32,
    /// The rotations between which the target is away.
    away: std::ops::Range<usize>,
}

fn rotate_while_the_target_is_away(rotations: Rotations) {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("app.log");
    let receiver = Receiver::start(&folder.path().join("receiver"), &["--idle-timeout", "5m"]);
    let from = format!("jsonl:{}?follow", log.display());
    append(&log, "");
    let pad = "x".repeat(200);
    let mut next = 0;
    let mut write = |lines: u32| {
        let lines = (next..next + lines).map(|n| format!("{{\"n\":{n},\"pad\":\"{pad}\"}}\n"));
        append(&log, &lines.collect::<String>());
        next += rotations.lines / rotations.parts;
    };
    let args = [
        "send",
        "--from",
        &from,
        "--to",
        &receiver.uri,
        "--memory",
        "8MiB",
    ];
    let sender =
        Background::start(&[&args[..], &["--give-up", "10m", "--idle-timeout", "8s"]].concat());
    for rotation in 0..rotations.count {
        if rotation == rotations.away.start {
            receiver.process.signal("STOP");
        }
        let begun = Instant::now();
        for part in 1..=rotations.parts {
            write(rotations.lines / rotations.parts);
            let until = begun + rotations.interval * part / rotations.parts;
            std::thread::park_timeout(until.saturating_duration_since(Instant::now()));
        }
        let rotated = format!("app.log.{}", 100 - rotation);
        fs::rename(&log, folder.path().join(rotated)).unwrap();
        if rotation == rotations.away.end {
            receiver.process.signal("CONT");
        }
    }
    write(rotations.lines / rotations.parts);
    sender.succeed();
    receiver.process.signal("TERM");
    let (records, _) = receiver.succeed();
    let numbers = json_lines(&records).into_iter();
    let numbers = numbers.map(|line| line["fields"]["n"].as_u64().unwrap());
    assert!(
        numbers.eq(0..u64::from(next)),
        "a line is missing or out of order"
    );
}

/// Sends what a followed log has, until nothing comes for longer than a rotated file is waited for.
fn send_followed(log: &Path, to: &str) {
    let from = format!("jsonl:{}?follow", log.display());
    baler(&["send", "--from", &from, "--to", to, "--idle-timeout", "7s"]).success();
}

/// The position beside a log is no generation of it, though the log has a relative name.
#[test]
fn a_position_is_never_sent() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    for (n, rotated) in [(1, true), (2, false)] {
        append(&path("app.log"), &format!("{{\"n\":{n}}}\n"));
        let args = ["send", "--from", "jsonl:app.log?follow", "--to", "file:out"];
        let run = command()
            .args(args)
            .args(["--idle-timeout", "7s"])
            .current_dir(&folder)
            .output();
        assert!(run.unwrap().status.success());
        if rotated {
            fs::rename(path("app.log"), path("app.log.1")).unwrap();
        }
    }
    assert!(path("app.log.position").exists());
    assert_eq!(fields(&file_uri(&path("out"))), ["{\"n\":1}", "{\"n\":2}"]);
}

/// A link into another folder, as those to the logs of containers.
#[test]
fn a_log_that_is_rotated_behind_a_link_is_read_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::create_dir(path("pods")).unwrap();
    std::os::unix::fs::symlink("pods/0.log", path("c.log")).unwrap();
    let to = file_uri(&path("out"));
    append(&path("pods/0.log"), "{\"n\":1}\n");
    send_followed(&path("c.log"), &to);
    append(&path("pods/0.log"), "{\"n\":2}\n");
    fs::rename(path("pods/0.log"), path("pods/0.log.20261126")).unwrap();
    append(&path("pods/0.log"), "{\"n\":3}\n");
    send_followed(&path("c.log"), &to);
    assert_eq!(fields(&to), ["{\"n\":1}", "{\"n\":2}", "{\"n\":3}"]);
}

/// A log is deleted and made anew with the same inode while no sender runs. More than what was read
/// may have been in the old one, so the exit code says that something may be lost.
#[test]
fn a_log_that_is_made_anew_with_the_same_inode_is_read_from_its_beginning() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let (from, to) = (
        format!("jsonl:{}?follow", path("app.log").display()),
        file_uri(&path("out")),
    );
    let args = ["send", "--from", &from, "--to", &to, "--idle-timeout", "2s"];
    append(&path("app.log"), "{\"n\":1}\n{\"n\":2}\n");
    baler(&args).success();
    // The same inode, whatever the file system does.
    fs::write(path("app.log"), "{\"n\":3}\n{\"n\":4}\n{\"n\":5}\n").unwrap();
    let run = baler(&args).code(65);
    let told = String::from_utf8_lossy(&run.get_output().stderr).into_owned();
    assert!(told.contains("app.log: it has other content now"), "{told}");
    let expected: Vec<_> = (1..=5).map(|n| format!("{{\"n\":{n}}}")).collect();
    assert_eq!(fields(&to), expected);
}

/// Rotated faster than anybody looks: each generation is read, in order, and each event is a line of
/// log.
#[test]
fn a_log_that_is_rotated_several_times_is_read_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let to = file_uri(&path("out"));
    let from = format!("jsonl:{}?follow", path("app.log").display());
    append(&path("app.log"), "{\"n\":0}\n");
    let position = || fs::read_to_string(path("app.log.position")).unwrap_or_default();
    let mut sender = Background::spawn(
        command()
            .args(["send", "--from", &from, "--to", &to])
            .env("BALER_LOG", "info"),
    );
    wait_for("the first line", || {
        position().contains("\"offset\":8").then_some(())
    });
    for n in 1..6 {
        fs::rename(path("app.log"), path(&format!("app.log.{}", 10 - n))).unwrap();
        append(&path("app.log"), &format!("{{\"n\":{n}}}\n"));
    }
    sender.wait_for_message("app.log.9 now");
    sender.wait_for_message("app.log.5 is read to its end");
    wait_for("the last line", || {
        (position().matches("\"offset\":8").count() == 6).then_some(())
    });
    sender.signal("TERM");
    sender.succeed();
    let expected: Vec<_> = (0..6).map(|n| format!("{{\"n\":{n}}}")).collect();
    assert_eq!(fields(&to), expected);
}
