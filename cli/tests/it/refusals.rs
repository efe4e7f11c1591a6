//! A wrong input is named with its place and the nearest valid choice, and has its exit code.

use std::fs;

use predicates::prelude::PredicateBooleanExt as _;
use predicates::str::{contains, is_empty};

use crate::support::{baler, command, file_uri, json_lines, output, real_log};

#[test]
fn bad_uris_are_configuration_errors_that_name_the_place() {
    for (uri, message) in [
        ("tpc://h:1", "; did you mean tcp:?"),
        (
            "tpc://h:1",
            "byte 0 of the URI: tpc: is no known scheme, use one of ",
        ),
        ("nowhere", "byte 0 of the URI: a URI starts with a scheme"),
        ("tcp://h:99999", "byte 8 of the URI: the port"),
        ("tcp://h", "the port is missing"),
        (
            "tcp://h:1?hartbeat=5s",
            "the setting hartbeat is unknown; did you mean heartbeat?",
        ),
        (
            "tcp://h:1?heartbeat=5",
            "heartbeat is \"5\", not a time such as",
        ),
        ("file:///d?fsync=chnk", "did you mean chunk?"),
        ("null:?a=1&a=2", "a is given a second time"),
    ] {
        for args in [
            ["generate", "--to", uri].as_slice(),
            &["send", "--to", uri, "--from", "null:"],
        ] {
            baler(args)
                .code(78)
                .stdout(is_empty())
                .stderr(contains(message));
        }
    }
    baler(&["receive", "--from", "kieker-lgo:/tmp"])
        .code(78)
        .stderr(contains("is no known scheme"));
    for to in ["jsonl:log.jsonl", "text:log"] {
        let args = ["generate", "--to", to];
        baler(&args)
            .code(78)
            .stderr(contains("lines are only read"));
    }
    baler(&["send", "--from", "kieker-lgo:/tmp", "--to", "null:"])
        .code(78)
        .stderr(contains("did you mean kieker-log:?"));
}

#[test]
fn passwords_are_in_no_output() {
    for uri in [
        "tcp://me:hunter2@h:1?password=hunter2",
        "amqp://me:hunter2@h/v",
        "tcp://me:hunter2@h:1?hartbeat=1",
    ] {
        for args in [
            ["generate", "-vvv", "--to", uri],
            ["receive", "-vvv", "--from", uri],
        ] {
            let assert = baler(&args).code(78);
            let output = assert.get_output();
            let text = [output.stdout.clone(), output.stderr.clone()].concat();
            assert!(
                !String::from_utf8(text).unwrap().contains("hunter2"),
                "{uri}"
            );
        }
    }
}

#[cfg(all(feature = "amqp", feature = "kafka"))]
#[test]
fn verify_tells_an_endpoint_that_nobody_answers_from_a_broken_promise() {
    for uri in [
        "amqp://me:hunter2@127.0.0.1:1?queue=q",
        "kafka://127.0.0.1:1/t",
    ] {
        let run = baler(&["verify", "--to", uri, "--format", "json"]).code(69);
        let ended = run.stdout(is_empty());
        let told = String::from_utf8(ended.get_output().stderr.clone()).unwrap();
        assert!(told.contains("127.0.0.1:1"), "{told}");
        assert!(
            !told.contains("hunter2") && !told.contains("BROKEN"),
            "{told}"
        );
        // One line, and none of a client library.
        assert_eq!(told.lines().count(), 1, "{told}");
    }
}

#[test]
fn help_shows_no_secret_of_the_environment() {
    let uri = "amqp://me:hush@host?queue=q";
    for (command, variable) in [
        ("receive", "BALER_FROM"),
        ("send", "BALER_TO"),
        ("tap", "BALER_TAP"),
        ("relay", "BALER_QUARANTINE"),
        ("top", "BALER_TOP_ADDRESS"),
    ] {
        let mut help = crate::support::command();
        let help = help.args([command, "--help"]).env(variable, uri).output();
        let text = String::from_utf8(help.unwrap().stdout).unwrap();
        assert!(text.contains(&format!("[env: {variable}]")), "{text}");
        assert!(!text.contains("hush"), "{text}");
    }
}

#[test]
fn flags_of_a_command_stand_before_those_of_all_commands() {
    for command in [
        "receive", "relay", "replay", "tap", "top", "validate", "verify",
    ] {
        let help = output(&[command, "--help"]);
        let (own, global) = help.split_once("\nGlobal options:\n").unwrap();
        assert!(own.contains("\nUsage: baler "), "{help}");
        for flag in ["--verbose", "--quiet", "--config", "--shutdown-timeout"] {
            assert!(!own.contains(&format!("      {flag}")), "{help}");
            assert!(global.contains(flag), "{help}");
        }
        assert!(
            help.lines().all(|line| line.chars().count() <= 100),
            "{help}"
        );
    }
}

#[test]
fn who_does_not_answer_top_and_tap_is_named() {
    for args in [
        ["top", "127.0.0.1:1", "--once"],
        ["tap", "127.0.0.1:1", "-q"],
    ] {
        baler(&args)
            .code(69)
            .stderr(contains("http://127.0.0.1:1/").and(contains(": Connection refused")))
            .stderr(contains("io: ").not());
    }
}

#[test]
fn bad_flags_end_with_code_2_and_name_the_nearest() {
    for (args, message) in [
        (["generate", "--too", "null:"], "'--to'"),
        (["genrate", "--to", "null:"], "'generate'"),
    ] {
        baler(&args)
            .code(2)
            .stdout(is_empty())
            .stderr(contains(message));
    }
    for (flag, value, message) in [
        ("--compression", "zsdt", "use none, lz4, zstd"),
        ("--compression", "zstd:23", "use none, lz4, zstd"),
        ("--container", "nativ", "'native'"),
        ("--wait-time", "5", "is no duration; write"),
        ("--chunk-bytes", "0", "is no size; write"),
        ("--rate", "0", "is no rate; write"),
        ("--threads", "0", ""),
        ("--records", "many", "is no count; write"),
    ] {
        baler(&["generate", "--to", "null:", flag, value])
            .code(2)
            .stderr(contains(message).and(contains(flag)));
    }
}

#[test]
fn settings_that_do_not_go_together_are_configuration_errors() {
    for (args, message) in [
        (
            [
                "generate",
                "--to",
                "null:",
                "--container",
                "kieker",
                "--compression",
                "lz4",
            ]
            .as_slice(),
            "does not go with --container kieker",
        ),
        (
            &["generate", "--to", "null:", "--chunk-bytes", "2MiB"],
            "chunk_bytes (2097152) is above max_chunk_bytes",
        ),
        (
            &["receive", "--from", "null:", "--format", "csv"],
            "--output DIR",
        ),
        (
            &["receive", "--from", "null:", "--identity"],
            "--format json",
        ),
        (
            &["receive", "--from", "null:", "--since", "5", "--until", "5"],
            "no record can be between",
        ),
    ] {
        baler(args)
            .code(78)
            .stdout(is_empty())
            .stderr(contains(message));
    }
}

#[test]
fn a_setting_given_as_flag_and_in_the_environment_is_an_error_that_names_both() {
    let run = |flag: &[&str]| {
        let mut command = assert_cmd::Command::from_std(command());
        command.env("BALER_COMPRESSION", "lz4");
        command.args(["generate", "--to", "null:", "--records", "10"]);
        command.args(flag).assert()
    };
    run(&[]).success();
    run(&["--compression", "zstd"])
        .code(78)
        .stderr(contains("--compression").and(contains("BALER_COMPRESSION")));
}

#[test]
fn what_cannot_be_opened_is_unavailable() {
    for args in [
        ["receive", "--from", "file:///no/such/folder"].as_slice(),
        &["inspect", "/no/such/file"],
        &["send", "--from", "kieker-log:/no/such/log", "--to", "null:"],
        &["receive", "--from", "tcp://203.0.113.1:1"],
        #[cfg(feature = "amqp")]
        &["inspect", "amqp://127.0.0.1:1/?queue=q", "--give-up", "1s"],
        #[cfg(feature = "kafka")]
        &["inspect", "kafka://127.0.0.1:1/topic", "--give-up", "1s"],
    ] {
        baler(args)
            .code(69)
            .stdout(is_empty())
            .stderr(contains("error: "));
    }
    // Nobody listens at port 1: the report still adds up.
    let assert = baler(&[
        "generate",
        "--to",
        "tcp://127.0.0.1:1",
        "--records",
        "100",
        "--give-up",
        "300ms",
        "--format",
        "json",
    ])
    .code(69)
    .stderr(contains("gave up on tcp://127.0.0.1:1"));
    let report: serde_json::Value = serde_json::from_slice(&assert.get_output().stdout).unwrap();
    assert_eq!(
        (&report["emitted"], &report["delivered"]),
        (&100.into(), &0.into())
    );
    let dropped = report["dropped"].as_object().unwrap().values();
    assert_eq!(dropped.map(|it| it.as_u64().unwrap()).sum::<u64>(), 100);
}

#[test]
fn wrong_lines_of_a_log_are_named_counted_and_skipped_or_end_it() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    fs::create_dir(&log).unwrap();
    let class = "kieker.common.record.controlflow.OperationExecutionRecord";
    fs::write(log.join("kieker.map"), format!("$1={class}\n")).unwrap();
    let good = "$1;5;a.b();s;1;2;3;h;0;0\n";
    let text = format!("{good}$1;5;a.b();s;one;2;3;h;0;0\n$7;1\n{good}");
    fs::write(log.join("kieker-1.dat"), text).unwrap();
    let from = format!("kieker-log:{}", log.display());
    let to = file_uri(&folder.path().join("chunks"));

    let assert = baler(&["send", "--from", &from, "--to", &to, "--format", "json"]);
    let assert = assert
        .code(65)
        .stderr(contains("kieker-1.dat:2:14: field traceId").and(contains("kieker-1.dat:3:")));
    let report: serde_json::Value = serde_json::from_slice(&assert.get_output().stdout).unwrap();
    assert_eq!(report["delivered"], 2);
    assert_eq!(report["source"]["quarantined"], 2);
    let records = output(&["receive", "--from", &to, "--format", "json"]);
    assert_eq!(json_lines(&records).len(), 2);

    let stop = format!("{from}?on_bad_line=stop");
    for command in ["send", "relay", "analyze", "receive"] {
        let to = match command {
            "send" | "relay" => &["--to", "null:"][..],
            _ => &[],
        };
        let args = [&[command, "--from", &stop], to].concat();
        baler(&args)
            .code(65)
            .stderr(contains("error: ").and(contains("kieker-1.dat:2:14: field traceId")));
    }
    let typo = format!("{from}?on_bad_line=stp");
    baler(&["send", "--from", &typo, "--to", "null:"])
        .code(78)
        .stderr(contains("did you mean stop?"));
}

#[test]
fn broken_chunks_are_kept_and_the_rest_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let chunks = folder.path().join("chunks");
    let uri = file_uri(&chunks);
    output(&[
        "send",
        "--from",
        &real_log(),
        "--to",
        &uri,
        "--chunk-records",
        "1000",
    ]);
    let segment = fs::read_dir(&chunks)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.extension().is_some_and(|it| it == "seg"))
        .unwrap();
    let mut bytes = fs::read(&segment).unwrap();
    bytes[5_000] ^= 1;
    fs::write(&segment, bytes).unwrap();

    let quarantine = folder.path().join("poison");
    let summary = folder.path().join("summary.json");
    let assert = baler(&[
        "receive",
        "--from",
        &uri,
        "--format",
        "json",
        "--quarantine",
        quarantine.to_str().unwrap(),
        "--summary",
        summary.to_str().unwrap(),
    ])
    .code(65);
    let records = String::from_utf8(assert.get_output().stdout.clone()).unwrap();
    assert_eq!(json_lines(&records).len(), 5_541);
    let summary = crate::support::read_json(&summary);
    assert_eq!(summary["quarantined"], 1);
    assert_eq!(summary["records"], 5_541);
    let kept = fs::read_dir(&quarantine).unwrap().count();
    assert_eq!(kept, 2, "the bytes and their description");

    let document = baler(&["inspect", &uri, "--format", "json"]).code(65);
    let document: serde_json::Value =
        serde_json::from_slice(&document.get_output().stdout).unwrap();
    assert_eq!(document["broken"].as_array().unwrap().len(), 1);
    assert_eq!(document["broken"][0]["position"], 32);
}

#[test]
fn nobody_reading_is_a_quiet_end() {
    use std::io::Read as _;
    use std::process::Stdio;

    let folder = tempfile::tempdir().unwrap();
    let uri = file_uri(&folder.path().join("chunks"));
    output(&["generate", "--to", &uri, "--records", "20000"]);
    let mut child = command()
        .args(["receive", "--from", &uri, "--format", "json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = [0; 64];
    child.stdout.take().unwrap().read_exact(&mut first).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn a_metrics_address_that_is_taken_or_wrong_is_named() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let args = ["generate", "--to", "null:", "--metrics"];
    let refused = baler(&[&args[..], &[&address]].concat()).code(69);
    let told = String::from_utf8(refused.get_output().stderr.clone()).unwrap();
    assert!(
        told.contains(&format!("cannot serve metrics at {address}")),
        "{told}"
    );
    let wrong = baler(&[&args[..], &["localhost"]].concat()).code(2);
    let told = String::from_utf8(wrong.get_output().stderr.clone()).unwrap();
    assert!(told.contains("`localhost` is no address"), "{told}");
}

/// The error for a format that this build lacks names its feature.
#[cfg(not(feature = "parquet"))]
#[test]
fn parquet_without_its_feature_is_told_with_the_feature() {
    let args = ["receive", "--from", "null:", "--format", "parquet"];
    let run = baler(&[&args[..], &["--output", "/nowhere"]].concat()).code(78);
    let told = String::from_utf8_lossy(&run.get_output().stderr).into_owned();
    assert!(told.contains("--features parquet"), "{told}");
}
