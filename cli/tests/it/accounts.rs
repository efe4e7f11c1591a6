//! The totals of every document add up: what was sent, relayed and replayed, and what a spool did.

use serde_json::Value;

use crate::relay::{adds_up as relay_adds_up, generate};
use crate::support::{baler, file_uri, json, real_log};

/// Nobody listens there.
const NOBODY: &str = "tcp://127.0.0.1:1";

fn number(document: &Value, name: &str) -> u64 {
    document[name]
        .as_u64()
        .unwrap_or_else(|| panic!("{name} is no count: {document}"))
}

fn sum(document: &Value, names: &[&str]) -> u64 {
    names.iter().map(|name| number(document, name)).sum()
}

fn sum_of_all(counts: &Value) -> u64 {
    let counts = counts.as_object().unwrap().values();
    counts.map(|count| count.as_u64().unwrap()).sum()
}

/// Records and chunks of a command that sends: `demo`, `generate` or `send`.
pub(crate) fn sender_adds_up(report: &Value) {
    assert_eq!(
        number(report, "emitted"),
        sum(report, &["delivered", "spooled"]) + sum_of_all(&report["dropped"]),
        "{report}"
    );
    let made = number(report, "chunks_made");
    let fates = ["chunks", "chunks_spooled", "chunks_given_up"];
    assert_eq!(made, sum(report, &fates), "{report}");
    assert_eq!(made, sum_of_all(&report["closed_by"]), "{report}");
    if !report["spool"].is_null() {
        spool_adds_up(&report["spool"]);
        assert_eq!(report["spool"]["spooled"], report["spooled"], "{report}");
        assert_eq!(report["spool"]["spooled_chunks"], report["chunks_spooled"]);
    }
}

fn spool_adds_up(spool: &Value) {
    for unit in ["", "_chunks"] {
        let sum = |names: &[&str]| {
            let names: Vec<_> = names.iter().map(|name| format!("{name}{unit}")).collect();
            let names: Vec<_> = names.iter().map(String::as_str).collect();
            sum(spool, &names)
        };
        assert_eq!(
            sum(&["found", "spooled"]),
            sum(&["replayed", "refused", "lost", "waiting"]),
            "{spool}"
        );
    }
}

#[test]
fn generate_and_demo_count_every_chunk_the_last_one_too() {
    for flags in [
        [
            "generate",
            "--to",
            "null:",
            "--records",
            "1005",
            "--seed",
            "3",
        ]
        .as_slice(),
        &["generate", "--to", "null:", "--records", "0"],
        &[
            "generate",
            "--to",
            "null:",
            "--records",
            "1005",
            "--lanes",
            "3",
        ],
        &[
            "generate",
            "--to",
            "null:",
            "--records",
            "1005",
            "--container",
            "kieker",
        ],
        &["demo", "--seconds", "1"],
    ] {
        let common = ["--chunk-records", "100", "--format", "json"];
        let report = json(&[flags, &common].concat());
        sender_adds_up(&report);
        assert_eq!(report["chunks"], report["chunks_made"], "{report}");
    }
}

#[test]
fn records_that_a_medium_does_not_take_are_accounted_for_in_chunks_too() {
    let report = baler(&[
        "generate",
        "--to",
        NOBODY,
        "--records",
        "1000",
        "--chunk-records",
        "100",
        "--retry-max-elapsed",
        "200ms",
        "--retry-max-delay",
        "50ms",
        "--give-up",
        "1m",
        "--format",
        "json",
    ]);
    let report = report.code(75);
    let report: Value = serde_json::from_slice(&report.get_output().stdout).unwrap();
    sender_adds_up(&report);
    assert_eq!(report["chunks_given_up"], report["chunks_made"], "{report}");
}

#[test]
fn records_above_the_largest_chunk_are_counted_in_few_lines() {
    // A record takes more than twice as much.
    let small = ["--max-chunk-bytes", "100", "--chunk-bytes", "100"];
    let args = [
        "generate",
        "--to",
        "null:",
        "--records",
        "3000",
        "--format",
        "json",
    ];
    let run = baler(&[&args[..], &small].concat()).code(65);
    let report: Value = serde_json::from_slice(&run.get_output().stdout).unwrap();
    sender_adds_up(&report);
    assert_eq!(report["dropped"]["too_large"], 3000, "{report}");
    let told = String::from_utf8(run.get_output().stderr.clone()).unwrap();
    let warnings = told.lines().filter_map(|line| line.split_once(" records="));
    let records = warnings.map(|(_, rest)| rest.split(' ').next().unwrap().parse().unwrap());
    let records: Vec<u32> = records.collect();
    assert_eq!(records.iter().sum::<u32>(), 3000, "{told}");
    assert!(records.len() < 50, "{told}");
}

#[test]
fn send_accounts_for_its_source_and_for_what_it_sent() {
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (folder.path().join("a"), folder.path().join("b"));
    let (first, second) = (file_uri(&first), file_uri(&second));
    for (from, to) in [(real_log(), first.clone()), (first, second)] {
        let report = json(&["send", "--from", &from, "--to", &to, "--format", "json"]);
        sender_adds_up(&report);
        let source = &report["source"];
        assert_eq!(
            number(source, "records"),
            number(&report, "emitted") + number(source, "filtered"),
            "{report}"
        );
        if !source["chunks"].is_null() {
            assert_eq!(
                number(source, "chunks"),
                sum(source, &["acknowledged", "given_back"]),
                "{report}"
            );
        }
    }
}

#[test]
fn spool_accounts_for_what_one_run_left_and_the_next_sent_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let spool = path("spool").to_str().unwrap().to_owned();
    let (source, more) = (file_uri(&path("source")), file_uri(&path("more")));
    let to = file_uri(&path("to"));
    generate(&source, 500);
    generate(&more, 200);
    let spooling = [
        "--spool",
        &spool,
        "--spool-after",
        "10ms",
        "--format",
        "json",
    ];
    let run = |args: &[&str]| json(&[args, &spooling].concat());

    // A relay whose target is away, then one that finds the spool.
    let away = run(&["relay", "--from", &source, "--to", NOBODY]);
    relay_adds_up(&away);
    spool_adds_up(&away["spool"]);
    // Five full chunks and the one that marks the end.
    assert_eq!(number(&away, "spooled"), 6, "{away}");
    assert_eq!(number(&away["spool"], "waiting_chunks"), 6, "{away}");
    let back = run(&["relay", "--from", &more, "--to", &to]);
    relay_adds_up(&back);
    spool_adds_up(&back["spool"]);
    assert_eq!(number(&back["spool"], "found_chunks"), 6, "{back}");
    assert_eq!(number(&back["spool"], "found"), 500, "{back}");
    assert_eq!(number(&back["spool"], "waiting_chunks"), 0, "{back}");
    let replayed = sum(&back["spool"], &["replayed_chunks"]);
    assert_eq!(number(&back, "forwarded") + replayed, 9, "{back}");

    // The same of a sender and of a replay.
    let away = run(&["send", "--from", &source, "--to", NOBODY]);
    sender_adds_up(&away);
    assert_eq!(number(&away["spool"], "waiting"), 500, "{away}");
    let stored = path("source").to_str().unwrap().to_owned();
    let back = run(&["replay", &format!("file://{stored}"), "--to", &to]);
    replay_adds_up(&back);
    assert_eq!(number(&back["sent"]["spool"], "found"), 500, "{back}");
    assert_eq!(number(&back["sent"]["spool"], "waiting"), 0, "{back}");
}

fn replay_adds_up(document: &Value) {
    let sent = &document["sent"];
    relay_adds_up(sent);
    if !sent["spool"].is_null() {
        spool_adds_up(&sent["spool"]);
    }
    assert_eq!(
        sum(document, &["decodable", "undecodable"]),
        number(document, "skipped") + number(sent, "received"),
        "{document}"
    );
}

#[test]
fn replay_accounts_for_what_it_skips() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let from = file_uri(&path("from"));
    generate(&from, 300);
    let narrow = format!("{}?max_chunk_bytes=200", file_uri(&path("narrow")));
    let aside = path("aside").to_str().unwrap().to_owned();
    let relayed = baler(&[
        "relay",
        "--from",
        &from,
        "--to",
        &narrow,
        "--quarantine",
        &aside,
        "--format",
        "json",
    ]);
    let relayed = relayed.code(65);
    let relayed: Value = serde_json::from_slice(&relayed.get_output().stdout).unwrap();
    relay_adds_up(&relayed);
    assert_eq!(number(&relayed, "quarantined"), 3, "{relayed}");
    std::fs::write(path("aside").join("0.chunk"), b"no chunk").unwrap();
    let to = file_uri(&path("to"));
    let replayed = baler(&["replay", &aside, "--to", &to, "--format", "json"]).code(65);
    let replayed: Value = serde_json::from_slice(&replayed.get_output().stdout).unwrap();
    replay_adds_up(&replayed);
    assert_eq!(number(&replayed, "skipped"), 1, "{replayed}");
}
