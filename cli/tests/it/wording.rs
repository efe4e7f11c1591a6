//! The texts that a person reads: help, summaries, messages.

#[cfg(all(
    feature = "amqp",
    feature = "instrument",
    feature = "kafka",
    feature = "kieker",
    feature = "parquet"
))]
mod help;

use std::fs;

use predicates::prelude::*;

use crate::support::{baler, file_uri, output};

/// Runs the program, which must end with this code. Returns its standard error.
fn stderr(args: &[&str], code: i32) -> String {
    let assert = baler(args).code(code);
    String::from_utf8(assert.get_output().stderr.clone()).unwrap()
}

#[test]
fn what_is_not_kept_is_called_discarded() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.jsonl");
    fs::write(&path, "{\"a\":1}\nno JSON\n").unwrap();
    let from = format!("jsonl:{}", path.display());
    let aside = file_uri(&folder.path().join("aside"));
    let aside = aside.trim_start_matches("file://");
    for args in [
        &["send", "--to", "null:", "--from", &from][..],
        &["relay", "--to", "null:", "--from", &from],
        &["receive", "--format", "none", "--from", &from],
    ] {
        let run = baler(args).code(65);
        let run = run.get_output();
        let text = [&*run.stdout, &*run.stderr].concat();
        let text = String::from_utf8(text).unwrap();
        assert!(text.contains("no quarantine: 1"), "{text}");
        assert!(text.contains("discarded"), "{text}");
        assert!(!text.contains("quarantined"), "{text}");
    }
    let args = [
        "receive",
        "--format",
        "none",
        "--quarantine",
        aside,
        "--from",
        &from,
    ];
    let text = stderr(&args, 65);
    assert!(squeezed(&text).contains(" quarantined 1 "), "{text}");
    assert!(!text.contains("discarded"), "{text}");
}

/// Returns the words, with one space between them.
fn squeezed(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_summary_says_nothing_twice_and_says_zero() {
    let text = output(&["generate", "--to", "null:", "--records", "2000"]);
    assert!(!text.contains("chunks made"), "{text}");
    let text = output(&["generate", "--to", "null:", "--records", "0"]);
    assert!(squeezed(&text).contains(" emitted 0 "), "{text}");
    assert!(!text.contains("0.0\n"), "{text}");
    let text = stderr(&["receive", "--format", "none", "--from", "null:"], 0);
    assert_eq!(text, "  records   0\n  ended by  end\n");
    let text = output(&["relay", "--from", "null:", "--to", "null:"]);
    assert!(squeezed(&text).contains(" chunks received 0 "), "{text}");
}

#[test]
fn log_lines_look_like_other_messages() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.jsonl");
    fs::write(&path, "no JSON\n").unwrap();
    let from = format!("jsonl:{}", path.display());
    let args = ["receive", "--format", "none", "--from", &from];
    let text = stderr(&args, 65);
    let begin = "warning: bytes cannot be processed origin=";
    assert!(text.starts_with(begin), "{text}");
    let text = stderr(&[&args[..], &["-v"]].concat(), 65);
    assert!(text.contains("WARN baler::quarantine: bytes"), "{text}");
}

#[test]
fn hidden_commands_are_not_suggested() {
    for (typed, suggested) in [("swep", "'sweep'"), ("verify-consumr", "'verify'")] {
        let text = stderr(&[typed], 2);
        assert!(text.contains(suggested), "{text}");
        assert!(
            !text.contains("-order'") && !text.contains("verify-consumer'"),
            "{text}"
        );
    }
    let text = stderr(&["irl", "chek"], 2);
    assert!(text.contains("'check'"), "{text}");
}

#[test]
fn a_typing_error_in_a_uri_names_the_nearest_setting() {
    for (uri, message) in [
        #[cfg(feature = "amqp")]
        (
            "amqp://h?quueue=a",
            "the setting quueue is unknown; did you mean queue?",
        ),
        #[cfg(feature = "kafka")]
        (
            "kafka://h/t?lingr.ms=1",
            "the setting lingr.ms is unknown; did you mean linger.ms?",
        ),
        (
            "jsonl:app.jsonl",
            "receive --format json, or --format lines, writes them",
        ),
    ] {
        let args = ["generate", "--to", uri];
        baler(&args)
            .code(78)
            .stderr(predicate::str::contains(message));
    }
}

#[test]
fn flags_keep_their_old_names() {
    let folder = tempfile::tempdir().unwrap();
    let types = folder.path().join("shop.irl");
    fs::write(&types, "package com.shop\n\nentity Order {\n\tlong id\n}\n").unwrap();
    for flag in ["--out", "--output"] {
        let target = folder.path().join(flag);
        let (types, target) = (types.to_str().unwrap(), target.to_str().unwrap());
        let args = ["irl", "generate", types, "--language", "python"];
        output(&[&args[..], &[flag, target]].concat());
        assert!(fs::read_dir(target).unwrap().next().is_some());
    }
}
