//! What commands show on a terminal of 80 columns: their summaries and tables, as a person has read
//! them.

use std::path::Path;

use crate::support::{command, golden, real_log, workspace};

/// Figures of two columns that differ from run to run.
const VARYING: [&str; 6] = [
    "bytes",
    "bytes per record",
    "chunks per second",
    "forwarded bytes",
    "records per second",
    "seconds",
];

/// Runs a command in the folder. Returns its line and all that it shows, without what differs from
/// run to run.
fn shown(folder: &Path, args: &[&str]) -> String {
    let mut command = command();
    command.args(args).current_dir(folder).env("COLUMNS", "80");
    let run = command.output().unwrap();
    assert!(run.status.success(), "{args:?}: {run:?}");
    let text = String::from_utf8([run.stderr, run.stdout].concat()).unwrap();
    let words: Vec<String> = args.iter().map(|arg| named(arg)).collect();
    let mut all = format!("$ baler {}\n", words.join(" "));
    for line in text.lines() {
        let line = steady(&named(line));
        assert!(line.chars().count() <= 80 || line.contains('/'), "{line}");
        all.push_str(&format!("{line}\n"));
    }
    all + "\n"
}

/// Leaves the folder of the workspace out of paths.
fn named(text: &str) -> String {
    text.replace(&format!("{}/", workspace("").display()), "")
}

fn steady(line: &str) -> String {
    let figure = line.trim_start().split_once("  ");
    if let Some((_, value)) = figure.filter(|(name, _)| VARYING.contains(name)) {
        return line.replace(value.trim_start(), "…");
    }
    // Times of faults, and what comes from the medium's clock.
    let words: Vec<&str> = line.split(' ').collect();
    let next = |at: usize| words.get(at + 1).copied().unwrap_or_default();
    let steady = words.iter().enumerate().map(|(at, word)| {
        let is_time = word.parse::<f64>().is_ok() && ["s,", "s:"].contains(&next(at));
        if is_time { "…" } else { word }
    });
    steady.collect::<Vec<_>>().join(" ")
}

#[test]
fn summaries_and_tables_are_the_ones_that_were_read() {
    let folder = tempfile::tempdir().unwrap();
    let chunk = |name: &str| {
        let path = workspace("common/tests/golden/native").join(name);
        path.to_str().unwrap().to_owned()
    };
    let (calls, types, log) = (
        chunk("kieker-calls.chunk"),
        chunk("two-types.chunk"),
        real_log(),
    );
    let events = workspace("analysis/tests/data/kieker/trace-events-2014");
    let events = format!("kieker-log:{}", events.display());
    let made = ["generate", "--to", "file:calls", "--records", "2500"];
    let runs: [&[&str]; 21] = [
        &[&made[..], &["--wait-time", "1h"]].concat(),
        &["validate", "--from", "file:calls", "--to", "file:copy"],
        &["relay", "--from", "file:calls", "--to", "file:copy"],
        &["receive", "--from", "file:copy", "--count", "3"],
        &["receive", "--from", "file:copy", "--format", "none"],
        &["receive", "--from", "file:copy", "--type", "None"],
        &["tap", "file:copy", "--from-start", "--count", "2"],
        &["replay", "--check", "file:copy"],
        &["replay", "file:copy", "--to", "null:"],
        &["send", "--from", "file:copy", "--to", "null:"],
        &["send", "--from", &log, "--to", "file:log"],
        &[
            "receive",
            "--from",
            "file:log",
            "--format",
            "none",
            "--operations",
        ],
        &[
            "receive",
            "--from",
            "file:log",
            "--format",
            "none",
            "--workers",
            "2",
        ],
        &["analyze", "--from", "file:log"],
        &["analyze", "--from", &events],
        &["analyze", "--from", "file:copy"],
        &["inspect", &calls, "--records", "2"],
        &["inspect", &types, "--records", "2", "--strings", "3"],
        &["verify", "--to", "file:", "--records", "500"],
        &[
            "verify",
            "--to",
            "file:",
            "--records",
            "500",
            "--faults",
            "producer-term",
        ],
        &["send", "--from", "jsonl:nothing", "--to", "null:"],
    ];
    std::fs::write(folder.path().join("nothing"), "").unwrap();
    let all: String = runs.iter().map(|run| shown(folder.path(), run)).collect();
    golden("summaries.txt", &all);
}
