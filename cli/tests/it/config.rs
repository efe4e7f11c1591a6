//! The configuration file: its place in the order of settings, and its errors.

use std::fs;
use std::path::{Path, PathBuf};

use predicates::str::contains;
use serde_json::Value;

use crate::support::{DEADLINE, baler, command, file_uri, json, output, workspace};

fn write(folder: &Path, text: &str) -> PathBuf {
    let path = folder.join("baler.toml");
    fs::write(&path, text).unwrap();
    path
}

/// Runs with this file. Returns the exit code and the message.
fn refused(text: &str, args: &[&str]) -> (i32, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = write(folder.path(), text);
    let mut all = vec!["--config", path.to_str().unwrap()];
    all.extend(args);
    let run = baler(&all);
    let ended = run.get_output();
    let told = String::from_utf8(ended.stderr.clone()).unwrap();
    (ended.status.code().unwrap(), told)
}

#[test]
fn a_flag_comes_before_the_environment_before_the_file_before_the_default() {
    let folder = tempfile::tempdir().unwrap();
    let path = write(
        folder.path(),
        "[generate]\nto = \"null:\"\nrecords = 300\nseed = 7\nformat = \"json\"\n\
         [shipping]\nchunk_records = 100\n",
    );
    let path = path.to_str().unwrap();
    let from_file = json(&["generate", "--config", path]);
    assert_eq!(
        (
            &from_file["records"],
            &from_file["seed"],
            &from_file["records_per_chunk"]
        ),
        (&Value::from(300), &Value::from(7), &Value::from(75.0))
    );
    let flagged = json(&["--config", path, "generate", "--records", "40"]);
    assert_eq!(
        (&flagged["records"], &flagged["seed"]),
        (&Value::from(40), &Value::from(7))
    );
    let mut run = assert_cmd::Command::from_std(command());
    let run = run
        .args(["generate"])
        .env("BALER_CONFIG", path)
        .env("BALER_CHUNK_RECORDS", "50")
        .timeout(DEADLINE)
        .assert()
        .success();
    let by_variable: Value = serde_json::from_slice(&run.get_output().stdout).unwrap();
    // The last chunk has no record.
    assert_eq!(by_variable["chunks"], 7);
}

#[test]
fn the_example_is_valid_and_sets_what_it_says() {
    let example = workspace("cli/baler.example.toml");
    let help = output(&["--config", example.to_str().unwrap(), "send", "--help"]);
    for default in [
        "default: lz4",
        "default: 1024",
        "default: 5m",
        "default: json",
    ] {
        assert!(help.contains(default), "{default}: {help}");
    }
    let help = output(&["--config", example.to_str().unwrap(), "receive", "--help"]);
    assert!(help.contains("*.MemorySwapUsageRecord"), "{help}");
    let help = output(&["--config", example.to_str().unwrap(), "relay", "--help"]);
    for default in [
        "default: /var/lib/baler/relay-spool",
        "default: 4GiB",
        "default: fsync",
        "default: 2048",
    ] {
        assert!(help.contains(default), "{default}: {help}");
    }
}

#[test]
fn the_size_of_chunks_can_be_left_to_the_collector() {
    let folder = tempfile::tempdir().unwrap();
    let path = write(
        folder.path(),
        "[generate]\nto = \"null:\"\nrecords = 1500\nformat = \"json\"\n\
         [shipping]\nchunk_records = \"auto\"\nmax_latency = \"1h\"\n",
    );
    let path = path.to_str().unwrap();
    let report = json(&["generate", "--config", path]);
    // All at once, at the end: an hour is long.
    assert_eq!(report["delivered"], 1_500);
    assert_eq!(
        report["closed_by"]["flush"], report["chunks_made"],
        "{report}"
    );
    assert_eq!(report["closed_by"]["records"], 0, "{report}");
    let fixed = ["generate", "--config", path, "--chunk-records", "100"];
    let run = baler(&fixed).failure().code(78);
    run.stderr(contains(
        "max_latency (3600s) goes with chunk_records = auto, which is 100; a fixed size has wait_time",
    ));
    let metrics = folder.path().join("metrics");
    let file = metrics.to_str().unwrap();
    output(&["generate", "--config", path, "--metrics-file", file]);
    let told = fs::read_to_string(&metrics).unwrap();
    // Part of the latency is kept for the time after a chunk is closed, and half of it at most.
    let wait = told
        .lines()
        .find_map(|line| line.strip_prefix("baler_chunk_wait_seconds "));
    let wait: f64 = wait.unwrap().parse().unwrap();
    assert!((1_800.0..=3_600.0).contains(&wait), "{told}");
    assert!(told.contains("\nbaler_chunk_records "), "{told}");
}

#[test]
fn a_switch_and_a_list_can_be_set() {
    let folder = tempfile::tempdir().unwrap();
    let chunks = file_uri(&folder.path().join("chunks"));
    output(&["generate", "--to", &chunks, "--records", "50"]);
    let text = format!(
        "[global]\nquiet = true\n[receive]\nfrom = \"{chunks}\"\nformat = \"json\"\n\
         identity = true\ntype = [\"*.OperationExecutionRecord\", \"nothing.*\"]\n"
    );
    let path = write(folder.path(), &text);
    let run = baler(&["receive", "--config", path.to_str().unwrap()]).success();
    let ended = run.get_output();
    assert!(ended.stderr.is_empty());
    let text = String::from_utf8(ended.stdout.clone()).unwrap();
    assert_eq!(text.lines().count(), 50);
    assert!(text.lines().all(|line| line.contains("\"identity\":{")));
}

#[test]
fn what_is_wrong_is_named_with_its_line_and_the_nearest_name() {
    for (text, message) in [
        (
            "[recieve]\nfrom = \"null:\"",
            ":2: [recieve] is no section; there are ",
        ),
        ("[recieve]\nfrom = \"null:\"", "did you mean receive?"),
        // A process that `verify` starts is no command of the user's.
        (
            "[verify-producer]\nto = \"null:\"",
            ":2: [verify-producer] is no section; there are adaptive, analyze, attempts, decoding, demo, ",
        ),
        (
            "[verify_consumer]\nfrom = \"null:\"",
            "validate, verify; did you mean ",
        ),
        (
            "[generate]\n\nrecrods = 1",
            ":3: recrods is no setting of [generate]; did you mean records?",
        ),
        (
            "[shipping]\nfrom = \"null:\"",
            ":2: from is no setting of [shipping]",
        ),
        (
            "[generate]\nrecords = \"many\"",
            ":2: [generate] records: `many` is no count",
        ),
        (
            "[shipping]\nchunk_records = \"many\"",
            ":2: [shipping] chunk_records: `many` is no number of records; write 1024, at least 1, or \
             auto",
        ),
        (
            "[shipping]\nchunk_records = 0",
            ":2: [shipping] chunk_records: `0` is no number of records",
        ),
        (
            "[shipping]\nmax_latency = 5",
            ":2: [shipping] max_latency: `5` is no duration",
        ),
        (
            "[generate]\nrecords = true",
            ":2: [generate] records: it must be a text, not true or false",
        ),
        (
            "[receive]\nfollow = \"yes\"",
            ":2: [receive] follow: it must be true or false, not a text",
        ),
        (
            "[send]\nformat = \"jsno\"",
            ":2: [send] format: jsno is not one of json, table; did you mean json?",
        ),
        (
            "[shipping]\nwait_time = 5",
            ":2: [shipping] wait_time: `5` is no duration",
        ),
        ("[generate]\nto = {}", ":2: to: a table is no setting"),
        ("[generate\nto = 1", ":1: "),
        (
            "[generate]\nconfig = \"x\"",
            ":2: config is no setting of [generate]",
        ),
    ] {
        let (code, told) = refused(text, &["generate", "--to", "null:", "--records", "1"]);
        assert_eq!(code, 78, "{told}");
        assert!(
            told.contains(&format!("baler.toml{message}")) || told.contains(message),
            "{message}: {told}"
        );
    }
    baler(&["--config", "/nowhere/baler.toml", "generate"])
        .code(69)
        .stderr(contains(
            "cannot read the configuration /nowhere/baler.toml",
        ));
}

#[test]
fn contradictions_name_both_places() {
    let twice = "[generate]\nchunk_records = 5\n[shipping]\nchunk_records = 6";
    let (code, told) = refused(twice, &["generate", "--to", "null:"]);
    assert_eq!(code, 78);
    assert!(
        told.contains(
            "chunk_records is given twice and differently: in [generate] at line 2 and in \
             [shipping] at line 4"
        ),
        "{told}"
    );
    let exclude = "[global]\nquiet = true\nverbose = 2";
    let (code, told) = refused(exclude, &["generate", "--to", "null:"]);
    assert_eq!(code, 78);
    assert!(
        told.contains("line 2 and ") && told.contains("exclude each other"),
        "{told}"
    );
    let uri = "[receive]\nfrom = \"file:///d?follow=true\"\nfollow = true";
    let (code, told) = refused(uri, &["receive"]);
    assert_eq!(code, 78);
    assert!(
        told.contains("baler.toml:3: follow is given twice: in [receive] and in the URI of --from"),
        "{told}"
    );
    baler(&["receive", "--from", "file:///d?follow=true", "--follow"])
        .code(78)
        .stderr(contains(
            "follow is given twice: as --follow and in the URI of --from",
        ));
}

/// An option of the program and a setting of a medium are different, even with the same name.
#[test]
fn an_option_has_nothing_to_do_with_a_setting_of_the_same_name() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let log = crate::support::real_log();
    let (binary, packed, stored) = (at("binary"), at("packed"), at("stored"));
    let away = "amqp://127.0.0.1:1?queue=q";
    let plain = format!("{away}&format=kieker-plain&registry_file={}", at("names"));
    let bounded = format!("{away}&overflow=reject-publish&max_length=1");
    let binary = format!("kieker-log:{binary}?format=binary");
    let packed = format!("kieker-log:{packed}?compression=gzip");
    let (all, stored) = (
        format!("file://{stored}?from=start"),
        format!("file://{stored}"),
    );
    let listening = "tcp://127.0.0.1:0?memory=64MiB";
    for (args, code) in [
        (
            vec!["send", "--from", &log, "--to", &binary, "--format", "json"],
            0,
        ),
        (
            vec![
                "send",
                "--from",
                &log,
                "--to",
                &packed,
                "--compression",
                "zstd",
            ],
            0,
        ),
        (vec!["send", "--from", &log, "--to", &stored], 0),
        (vec!["receive", "--from", &all, "--format", "none"], 0),
        (
            vec![
                "send",
                "--from",
                listening,
                "--to",
                "null:",
                "--memory",
                "8MiB",
                "--idle-timeout",
                "1s",
                "--give-up",
                "1s",
            ],
            69,
        ),
        (
            vec![
                "receive",
                "--from",
                &plain,
                "--format",
                "json",
                "--give-up",
                "1s",
            ],
            69,
        ),
        (
            vec![
                "generate",
                "--to",
                &bounded,
                "--records",
                "1",
                "--overflow",
                "block",
                "--give-up",
                "1s",
            ],
            69,
        ),
    ] {
        let run = baler(&args);
        let told = String::from_utf8_lossy(&run.get_output().stderr).into_owned();
        assert!(!told.contains("given twice"), "{args:?}: {told}");
        run.code(code);
    }
}

/// Names that are an option of a command and a setting of a medium, with a value of the option.
const PAIRS: [(&str, &str); 9] = [
    ("adaptive", "/dev/null"),
    ("compression", "none"),
    ("format", "json"),
    ("max-bytes", "1MiB"),
    ("max-chunk-bytes", "1MiB"),
    ("memory", "8MiB"),
    ("overflow", "block"),
    ("token-file", "."),
    // The only pair with one meaning.
    ("follow", ""),
];

/// Returns the options of a command, which its help lists.
fn options(sub: &str) -> Vec<String> {
    let help = output(&[sub, "--help"]);
    let names = help.lines().filter_map(|line| {
        let (_, name) = line.split_once("--").filter(|(before, _)| {
            let before = before.trim();
            before.is_empty() || (before.len() == 3 && before.starts_with('-'))
        })?;
        name.split([' ', '[', '=']).next().map(str::to_owned)
    });
    names.collect()
}

/// Returns the names of the settings in the tables of a connector's README.
fn settings(connector: &str) -> Vec<String> {
    let readme = workspace(&format!("connectors/{connector}/README.md"));
    let readme = fs::read_to_string(readme).unwrap();
    let cells = readme.lines().filter_map(|line| line.strip_prefix("| `"));
    let names = cells.filter_map(|cell| cell.split('`').next());
    names.map(str::to_owned).collect()
}

/// Every option of every command beside every setting of every medium: both reach their owner. The
/// medium then refuses an unknown setting, so that nothing runs.
#[test]
fn every_option_stands_beside_the_setting_of_the_same_name() {
    let media = [
        ("amqp", "amqp://127.0.0.1:1?queue=q&"),
        ("file", "file:///nowhere?"),
        ("kafka", "kafka://127.0.0.1:1/topic?"),
        ("kieker", "kieker-log:/nowhere?"),
        ("kieker", "kieker+tcp://127.0.0.1:0?"),
        ("tcp", "tcp://127.0.0.1:0?"),
    ];
    let media = media.map(|(connector, uri)| (settings(connector), uri));
    let subs = "generate send receive analyze relay replay inspect tap sweep validate verify";
    let mut met = std::collections::BTreeSet::new();
    for sub in subs.split(' ') {
        let options = options(sub);
        assert!(options.len() > 3, "{sub}: {options:?}");
        let mut ends: Vec<_> = ["from", "to"].map(str::to_owned).into();
        ends.retain(|end| options.contains(end));
        // The value of an end is the URI itself.
        for option in options.iter().filter(|option| !ends.contains(option)) {
            let setting = option.replace('-', "_");
            for (_, uri) in media.iter().filter(|(names, _)| names.contains(&setting)) {
                let pair = PAIRS.iter().find(|(name, _)| name == option);
                let (name, value) = pair.unwrap_or_else(|| panic!("a new pair: {option}"));
                met.insert(*name);
                let uri = format!("{uri}{setting}=x&no_such_setting=1");
                let mut args = vec![sub.to_owned()];
                for end in &ends {
                    args.extend([format!("--{end}"), uri.clone()]);
                }
                if ends.is_empty() || sub == "replay" {
                    args.push(uri.clone());
                }
                args.push(format!("--{option}"));
                args.extend((!value.is_empty()).then(|| (*value).to_owned()));
                let args: Vec<_> = args.iter().map(String::as_str).collect();
                let run = baler(&args);
                let told = String::from_utf8_lossy(&run.get_output().stderr).into_owned();
                let is_one = *name == "follow";
                assert_eq!(told.contains("given twice"), is_one, "{args:?}: {told}");
                assert!(run.get_output().status.code() > Some(0), "{args:?}: {told}");
            }
        }
    }
    let all: std::collections::BTreeSet<_> = PAIRS.iter().map(|(name, _)| *name).collect();
    assert_eq!(met, all);
}

#[test]
fn a_flag_that_excludes_a_setting_of_the_file_wins() {
    let folder = tempfile::tempdir().unwrap();
    let path = write(
        folder.path(),
        "[global]\nquiet = true\n[generate]\nto = \"null:\"\nrecords = 1\n",
    );
    let run = baler(&["--config", path.to_str().unwrap(), "-v", "generate"]).success();
    let told = String::from_utf8(run.get_output().stderr.clone()).unwrap();
    assert!(told.contains("connected"), "{told}");
}

#[test]
fn a_flag_and_the_setting_of_the_file_that_it_needs_go_together() {
    let folder = tempfile::tempdir().unwrap();
    let path = write(
        folder.path(),
        &format!(
            "[spool]\nspool = \"{}\"\n[quarantine]\nquarantine = \"{}\"\n\
             [observe]\nmetrics = \"0\"\n[top]\nonce = true\n",
            folder.path().join("spool").display(),
            folder.path().join("poison").display(),
        ),
    );
    let path = path.to_str().unwrap();
    let with_spool = json(&[
        "--config",
        path,
        "generate",
        "--to",
        "null:",
        "--records",
        "10",
        "--spool-after",
        "2s",
        "--spool-sync=none",
        "--metrics-tap=token",
        "--format",
        "json",
    ]);
    assert_eq!(with_spool["spool"]["waiting"], 0);
    output(&[
        "--config",
        path,
        "receive",
        "--from",
        "null:",
        "--quarantine-bytes",
        "1MiB",
    ]);
    // The flags go together. No process listens there.
    let top = ["--config", path, "top", "127.0.0.1:1", "--format", "json"];
    baler(&top).code(69);
    for (flag, needed) in [
        ("--spool-after=1s", "--spool"),
        ("--spool-bytes=1MiB", "--spool"),
    ] {
        baler(&["generate", "--to", "null:", flag])
            .code(2)
            .stderr(contains(format!(" needs {needed}, as a flag, in the ")));
    }
}

#[test]
fn log_directives_of_the_environment_are_added_to_verbose() {
    let folder = tempfile::tempdir().unwrap();
    let path = write(folder.path(), "[generate]\nto = \"null:\"\nrecords = 10\n");
    for (directives, is_told) in [("lapin=debug", true), ("error", false)] {
        let run = assert_cmd::Command::from_std(command())
            .args(["--config", path.to_str().unwrap(), "-v", "generate"])
            .env("BALER_LOG", directives)
            .timeout(DEADLINE)
            .assert()
            .success();
        let told = String::from_utf8(run.get_output().stderr.clone()).unwrap();
        assert_eq!(told.contains("connected"), is_told, "{directives}: {told}");
    }
}
