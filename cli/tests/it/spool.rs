//! Senders with a spool: a medium that is away, a sender that is killed, figures that add up.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::Path;

use baler_connector_file::{PathItem, read_path};
use serde_json::Value;

use crate::support::{Background, Receiver, baler, file_uri, json, json_lines, output, wait_for};

/// No process listens there.
const NOBODY: &str = "tcp://127.0.0.1:1";

/// Identities and records of a receiver's lines, in order.
fn lines(text: &str) -> Vec<(String, u64, u64, String)> {
    let lines = json_lines(text).into_iter().map(|line| {
        let identity = &line["identity"];
        let lane = format!("{}/{}", identity["epoch"], identity["lane"]);
        let number = |name: &str| identity[name].as_u64().unwrap();
        let fields = line["fields"].to_string();
        (lane, number("sequence"), number("index"), fields)
    });
    lines.collect()
}

/// Sequences of the chunks in a spool, in order.
fn spooled(folder: &Path) -> Vec<(u64, u32)> {
    let Ok(items) = read_path(folder.join("chunks")) else {
        return Vec::new();
    };
    let chunks = items.filter_map(|item| match item {
        Ok(PathItem::Chunk(delivery)) => delivery.meta,
        _ => None,
    });
    chunks
        .map(|meta| (meta.identity.sequence, meta.records))
        .collect()
}

#[test]
fn what_was_spooled_in_one_run_is_sent_on_by_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let spool = folder.path().join("spool");
    let spool = spool.to_str().unwrap();
    let common = [
        "--spool",
        spool,
        "--spool-after",
        "50ms",
        "--format",
        "json",
        "--chunk-records",
        "100",
    ];
    let first = ["generate", "--to", NOBODY, "--records", "5000"];
    let report = json(&[first.as_slice(), &common].concat());
    assert_eq!(report["emitted"], 5_000);
    assert_eq!(
        (&report["delivered"], &report["spooled"]),
        (&0.into(), &5_000.into())
    );
    assert_eq!(report["spool"]["waiting"], 5_000);
    let error = report["spool"]["medium_error"].as_str().unwrap();
    assert!(error.contains("127.0.0.1:1"), "{error}");

    let to = file_uri(&folder.path().join("to"));
    let second = ["generate", "--to", &to, "--records", "700", "--seed", "2"];
    let report = json(&[second.as_slice(), &common].concat());
    assert_eq!(report["emitted"], 700);
    let sum = report["delivered"].as_u64().unwrap() + report["spooled"].as_u64().unwrap();
    assert_eq!(sum, 700);
    let spool = &report["spool"];
    assert_eq!(
        (&spool["found"], &spool["waiting"]),
        (&5_000.into(), &0.into())
    );
    let there = output(&["receive", "--from", &to, "--identity", "--format", "json"]);
    let there = lines(&there);
    assert_eq!(there.len(), 5_700);
    let epochs: Vec<&String> = there.iter().map(|line| &line.0).collect();
    assert!(epochs[..5_000].iter().all(|epoch| *epoch == epochs[0]));
    assert!(epochs[5_000..].iter().all(|epoch| *epoch == epochs[5_000]));
    let in_order = |part: &[(String, u64, u64, String)]| {
        part.windows(2)
            .all(|pair| (pair[0].1, pair[0].2) < (pair[1].1, pair[1].2))
    };
    assert!(in_order(&there[..5_000]) && in_order(&there[5_000..]));
}

/// A disk that lost its end is reported: records that were spooled are missing.
#[test]
fn an_end_of_the_spool_that_is_gone_is_lost_with_a_message_and_code_65() {
    let folder = tempfile::tempdir().unwrap();
    let (spool, to) = (folder.path().join("spool"), folder.path().join("to"));
    let (flag, to) = (spool.to_str().unwrap(), file_uri(&to));
    let common = ["--spool", flag, "--spool-after", "50ms", "--format", "json"];
    let first = ["generate", "--to", NOBODY, "--records", "5000"];
    let size = ["--chunk-records", "100"];
    json(&[&first[..], &common, &size].concat());
    let segments = fs::read_dir(spool.join("chunks")).unwrap();
    let segments = segments.map(|it| it.unwrap().path());
    let is_segment = |it: &std::path::PathBuf| it.extension().is_some_and(|end| end == "seg");
    let segment = segments.filter(is_segment).max().unwrap();
    let length = fs::metadata(&segment).unwrap().len();
    let file = fs::OpenOptions::new().write(true).open(segment).unwrap();
    file.set_len(length * 96 / 100).unwrap();
    let second = ["generate", "--to", &to, "--records", "1"];
    let run = baler(&[&second[..], &common].concat()).code(65);
    let told = String::from_utf8_lossy(&run.get_output().stderr).into_owned();
    let report: Value = serde_json::from_slice(&run.get_output().stdout).unwrap();
    let lost = report["spool"]["lost"].as_u64().unwrap();
    assert!(lost > 0, "{report}");
    assert_eq!(report["spool"]["found"], 5_000);
    assert!(told.contains(&format!("{lost} records in ")), "{told}");
    // On a busy machine one run may not send everything on.
    let mut sent = 1;
    wait_for("the rest to be sent on", || {
        let report = json(&[&second[..], &common].concat());
        sent += 1;
        assert_eq!(report["spool"]["lost"], 0, "it is counted once");
        (report["spool"]["waiting"] == 0).then_some(())
    });
    let there = output(&["receive", "--from", &to, "--format", "json"]);
    assert_eq!(there.lines().count() as u64, 5_000 - lost + sent);
}

#[test]
fn sender_killed_while_the_medium_is_away_loses_nothing_that_was_spooled() {
    let folder = tempfile::tempdir().unwrap();
    let spool = folder.path().join("spool");
    let sender = Background::start(&[
        "generate",
        "--to",
        NOBODY,
        "--records",
        "100M",
        "--rate",
        "20000",
        "--chunk-records",
        "50",
        "--wait-time",
        "10ms",
        "--spool",
        spool.to_str().unwrap(),
        "--spool-after",
        "0ms",
    ]);
    wait_for("some chunks are spooled", || {
        (spooled(&spool).len() > 200).then_some(())
    });
    sender.signal("KILL");
    assert!(!sender.end().0.success());
    // Chunks that are whole on disk. A torn end is not a chunk.
    let kept = spooled(&spool);
    assert!(
        kept.iter()
            .map(|(sequence, _)| *sequence)
            .eq(0..kept.len() as u64)
    );
    let records: u64 = kept.iter().map(|(_, records)| u64::from(*records)).sum();

    let to = file_uri(&folder.path().join("to"));
    let report = json(&[
        "generate",
        "--to",
        &to,
        "--records",
        "0",
        "--format",
        "json",
        "--spool",
        spool.to_str().unwrap(),
    ]);
    assert_eq!(report["spool"]["found"], records, "{report}");
    assert_eq!(report["spool"]["waiting"], 0, "{report}");
    let there = output(&["receive", "--from", &to, "--identity", "--format", "json"]);
    let there = lines(&there);
    // The set is exact, by identity: each record once, none beside, in the order of the lane.
    let mut seen: HashMap<(u64, u64), u32> = HashMap::new();
    for (_, sequence, index, _) in &there {
        *seen.entry((*sequence, *index)).or_default() += 1;
    }
    let expected = kept
        .iter()
        .flat_map(|(sequence, records)| (0..u64::from(*records)).map(|index| (*sequence, index)));
    assert_eq!(seen.len() as u64, records);
    assert!(
        expected
            .into_iter()
            .all(|record| seen.get(&record) == Some(&1))
    );
    let order: Vec<_> = there.iter().map(|line| (line.1, line.2)).collect();
    assert!(order.is_sorted());
}

#[test]
fn receiver_that_is_away_in_the_middle_is_bridged_by_the_spool() {
    let folder = tempfile::tempdir().unwrap();
    let first = Receiver::start(&folder.path().join("first"), &["--identity"]);
    let uri = first.uri.clone();
    let spool = folder.path().join("spool");
    let sender = Background::start(&[
        "generate",
        "--to",
        &uri,
        "--records",
        "60000",
        "--rate",
        "10000",
        "--chunk-records",
        "100",
        "--spool",
        spool.to_str().unwrap(),
        "--spool-after",
        "100ms",
        "--format",
        "json",
    ]);
    wait_for("the first records", || {
        fs::metadata(&first.output)
            .ok()
            .filter(|it| it.len() > 100_000)
    });
    first.process.signal("KILL");
    let before = first.output.clone();
    first.process.end();
    wait_for("some chunks are spooled", || {
        (spooled(&spool).len() > 30).then_some(())
    });
    let second = Receiver::at(&uri, &folder.path().join("second"), &["--identity"]);
    let report: Value = serde_json::from_str(&sender.succeed()).unwrap();
    assert_eq!(report["emitted"], 60_000);
    let told = |name: &str| report[name].as_u64().unwrap();
    assert_eq!(told("delivered") + told("spooled"), 60_000, "{report}");
    assert!(told("spooled") >= 3_000, "{report}");
    assert_eq!(report["spool"]["waiting"], 0, "{report}");
    assert_eq!(report["spool"]["replayed"], report["spooled"], "{report}");
    second.process.signal("TERM");
    let (after, _) = second.succeed();
    let before = fs::read_to_string(before).unwrap();
    // A last line that was cut is none.
    let whole = before.rsplit_once('\n').map_or("", |(whole, _)| whole);
    let (before, after) = (lines(whole), lines(&after));
    let all = before.iter().chain(&after);
    let distinct: HashSet<_> = all.map(|line| (line.1, line.2)).collect();
    assert_eq!(distinct.len(), 60_000);
    let mut seen = HashSet::new();
    let first_arrivals = after.iter().map(|line| (line.1, line.2));
    let first_arrivals: Vec<_> = first_arrivals.filter(|it| seen.insert(*it)).collect();
    assert!(first_arrivals.is_sorted());
}

#[test]
fn full_spool_is_given_up_as_without_one_and_the_figures_add_up() {
    let folder = tempfile::tempdir().unwrap();
    let spool = folder.path().join("spool");
    let assert = baler(&[
        "generate",
        "--to",
        NOBODY,
        "--records",
        "200k",
        "--spool",
        spool.to_str().unwrap(),
        "--spool-after",
        "10ms",
        "--spool-bytes",
        "100KiB",
        "--give-up",
        "1s",
        "--format",
        "json",
    ]);
    let assert = assert.code(69);
    let report: Value = serde_json::from_slice(&assert.get_output().stdout).unwrap();
    let dropped = report["dropped"].as_object().unwrap().values();
    let dropped: u64 = dropped.map(|it| it.as_u64().unwrap()).sum();
    let spooled = report["spooled"].as_u64().unwrap();
    assert!(spooled > 0 && dropped > 0, "{report}");
    assert_eq!(report["emitted"], spooled + dropped, "{report}");
    assert!(
        report["spool"]["waiting"].as_u64().unwrap() >= spooled,
        "{report}"
    );
    assert!(fs::read_dir(spool.join("chunks")).unwrap().count() > 1);
}

#[test]
fn chunks_that_are_not_confirmed_in_time_are_dropped_and_counted() {
    let report = baler(&[
        "generate",
        "--to",
        NOBODY,
        "--records",
        "1000",
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
    assert_eq!(report["dropped"]["undelivered"], 1_000, "{report}");
}
