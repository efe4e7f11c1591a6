//! The outputs of `receive`: files that outlive a restart, outputs that take nothing, and a summary
//! that adds up.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use predicates::str::contains;
use serde_json::Value;

use crate::observability::{get, sum};
use crate::support::{
    Background, Receiver, baler, file_uri, json_lines, output, read_json, wait_for,
};

/// The time that a busy machine may take after the deadline.
const SLACK: Duration = Duration::from_secs(2);

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap()
}

/// Creates a folder with the chunks of 1,000 records, 100 in each.
fn chunks(folder: &Path) -> String {
    let uri = file_uri(&folder.join("chunks"));
    let flags = ["--records", "1000", "--chunk-records", "100"];
    output(&[&["generate", "--to", &uri], &flags[..]].concat());
    uri
}

/// Returns the files below a folder, with their texts.
fn texts(folder: &Path) -> Vec<(String, String)> {
    let files = fs::read_dir(folder).unwrap().map(|it| it.unwrap().path());
    let read = |path: &Path| fs::read_to_string(path).unwrap();
    files
        .map(|path| (path.display().to_string(), read(&path)))
        .collect()
}

#[test]
fn a_second_run_appends_and_overwrite_replaces() {
    let folder = tempfile::tempdir().unwrap();
    let uri = chunks(folder.path());
    // Of a table and of CSV the header is there once.
    for (format, header) in [("json", 0), ("table", 1), ("csv", 1)] {
        let place = folder.path().join(format);
        fs::create_dir_all(&place).unwrap();
        let name = if format == "csv" { "" } else { "records" };
        let target = place.join(name);
        let flags = ["--format", format, "--output", target.to_str().unwrap()];
        let receive = [["receive", "--from", &uri].as_slice(), &flags].concat();
        let lines = || {
            let texts = texts(&place);
            let lines = texts.iter().map(|(_, text)| text.lines().count());
            lines.sum::<usize>()
        };
        output(&receive);
        assert_eq!(lines(), 1_000 + header, "{format}");
        output(&receive);
        assert_eq!(lines(), 2_000 + header, "{format}");
        output(&[receive.as_slice(), &["--overwrite"]].concat());
        assert_eq!(lines(), 1_000 + header, "{format}");
        if format == "json" {
            json_lines(&fs::read_to_string(&target).unwrap());
        }
    }
    let refused = |flags: &[&str]| {
        let receive = ["receive", "--from", &uri, "--overwrite"];
        baler(&[&receive[..], flags].concat())
            .code(78)
            .stderr(contains("--overwrite"));
    };
    refused(&["--format", "json"]);
    #[cfg(feature = "parquet")]
    refused(&["--format", "parquet", "--output", "/nowhere"]);
}

#[test]
fn devices_and_pipes_are_written_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let uri = chunks(folder.path());
    let receive = ["receive", "--from", &uri, "--format", "json", "--output"];
    for flags in [&["/dev/null"][..], &["/dev/null", "--overwrite"]] {
        output(&[&receive[..], flags].concat());
    }
    let text = output(&[&receive[..], &["/dev/stdout"]].concat());
    assert_eq!(json_lines(&text).len(), 1_000);
    let fifo = folder.path().join("fifo");
    let made = std::process::Command::new("mkfifo").arg(&fifo).status();
    assert!(made.unwrap().success());
    let receiver = Background::start(&[&receive[..], &[fifo.to_str().unwrap()]].concat());
    let text = fs::read_to_string(&fifo).unwrap();
    assert_eq!(json_lines(&text).len(), 1_000);
    receiver.succeed();
}

#[test]
fn nothing_acknowledged_is_missing_when_a_killed_receiver_goes_on_with_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let first = Receiver::start(folder.path(), &["--identity"]);
    let (uri, file) = (first.uri.clone(), first.output.clone());
    let sender = Background::start(&[
        "generate",
        "--to",
        &uri,
        "--records",
        "100000",
        "--chunk-records",
        "50",
        "--rate",
        "50k",
    ]);
    wait_for("a part of the records", || {
        let text = fs::read(&file).unwrap_or_default();
        (text.len() > 3_000_000).then_some(())
    });
    first.process.signal("KILL");
    first.process.end();
    // As a kill in the middle of a write leaves it.
    let mut before = fs::read_to_string(&file).unwrap();
    before.push_str("{\"type\":\"to");
    fs::write(&file, &before).unwrap();
    fs::remove_file(folder.path().join("port")).unwrap();
    let second = Receiver::at(&uri, folder.path(), &["--identity"]);
    sender.succeed();
    second.process.signal("TERM");
    let (text, _) = second.succeed();
    let records = json_lines(&text);
    let distinct: BTreeSet<String> = records
        .iter()
        .map(|record| record["identity"].to_string())
        .collect();
    assert_eq!(distinct.len(), 100_000, "of {} lines", records.len());
    let (whole, cut) = before.rsplit_once('\n').unwrap();
    assert!(text.starts_with(whole), "what was there stays");
    let torn = fs::read_to_string(folder.path().join("records.jsonl.torn")).unwrap();
    assert_eq!(torn.trim_end(), cut);
}

#[test]
fn a_second_writer_of_a_file_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let receiver = Receiver::start(folder.path(), &[]);
    let file = receiver.output.to_str().unwrap().to_owned();
    let flags = ["--format", "json", "--output", &file, "--overwrite"];
    baler(&[&["receive", "--from", "null:"], &flags[..]].concat())
        .code(74)
        .stderr(contains("another process is writing it"));
    receiver.process.signal("TERM");
    receiver.succeed();
}

/// Returns the number of records in the output of a run. Files of Parquet are not read here.
fn rows(format: &str, target: &Path) -> Option<u64> {
    let lines = |text: &str| u64::try_from(text.lines().count()).unwrap();
    match format {
        "json" => Some(lines(&fs::read_to_string(target).unwrap())),
        "table" => Some(lines(&fs::read_to_string(target).unwrap()) - 1),
        "csv" => {
            let texts = texts(target);
            Some(texts.iter().map(|(_, text)| lines(text) - 1).sum())
        }
        _ => None,
    }
}

#[test]
fn the_summary_adds_up_for_every_format() {
    let folder = tempfile::tempdir().unwrap();
    let uri = file_uri(&folder.path().join("chunks"));
    // A record of another type than the 6,540 executions is among them.
    output(&["send", "--from", &crate::support::real_log(), "--to", &uri]);
    let formats = [
        "csv",
        "json",
        "none",
        #[cfg(feature = "parquet")]
        "parquet",
        "table",
    ];
    for format in formats {
        let cases = [
            (&["--type", "OperationExecutionRecord"][..], 6_540, 1, 0),
            (&["--count", "700"], 700, 0, 1),
            (
                &["--count", "700", "--type", "OperationExecutionRecord"],
                700,
                1,
                1,
            ),
            (&["--workers", "2"], 6_541, 0, 0),
        ];
        for (number_of_case, (flags, written, filtered, given_back)) in (0..).zip(cases) {
            let what = format!("{format} {flags:?}");
            let target = folder.path().join(format!("{format}{number_of_case}"));
            let summary = folder.path().join("summary.json");
            let mut args = vec!["receive", "--from", &uri, "--format", format];
            if format != "none" {
                args.extend(["--output", target.to_str().unwrap()]);
            }
            args.extend(["--summary", summary.to_str().unwrap()]);
            args.extend(flags);
            let told = baler(&args).success();
            let told = String::from_utf8(told.get_output().stderr.clone()).unwrap();
            let summary = read_json(&summary);
            let figure = |name: &str| number(&summary[name]);
            assert_eq!(figure("records"), written, "{what}");
            assert_eq!(
                figure("records_received"),
                written + figure("records_filtered") + figure("records_given_back"),
                "{what}: {summary}"
            );
            assert!(figure("records_filtered") <= filtered, "{what}: {summary}");
            assert_eq!(
                u64::from(figure("records_given_back") > 0),
                given_back,
                "{what}: {summary}"
            );
            assert_eq!(
                figure("chunks"),
                figure("acknowledged") + figure("given_back"),
                "{what}: {summary}"
            );
            let types = summary["types"].as_object().unwrap().values();
            assert_eq!(types.map(number).sum::<u64>(), written, "{what}");
            assert_eq!(rows(format, &target).unwrap_or(written), written, "{what}");
            let given_back = figure("records_given_back");
            assert_eq!(told.contains(" given back"), given_back > 0, "{told}");
        }
    }
}

/// Returns the figures of a receiver from `/metrics`: chunks received, acknowledged, in work.
fn figures(address: &str) -> [u64; 3] {
    let (_, text) = get(address, "/metrics");
    [
        "baler_chunks_received_total",
        "baler_chunks_acknowledged_total",
        "baler_chunks_in_work",
    ]
    .map(|name| format!("{:.0}", sum(&text, name)).parse().unwrap())
}

/// Waits until a process has ended by itself.
fn wait_for_end(process: &mut Background) {
    wait_for("the end", || (!process.is_running()).then_some(()));
}

#[test]
fn a_stalled_output_is_told_and_holds_up_no_shutdown() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let mut receiver = Background::start(&[
        "receive",
        "--from",
        "tcp://127.0.0.1:0",
        "--format",
        "json",
        "--shutdown-timeout",
        "3s",
        "--port-file",
        &path("port"),
        "--summary",
        &path("summary"),
        "--metrics",
        "127.0.0.1:0",
        "--metrics-port-file",
        &path("metrics"),
    ]);
    let read = |name: &str| wait_for(name, || fs::read_to_string(path(name)).ok());
    let (port, address) = (read("port"), read("metrics"));
    let to = format!("tcp://{}", port.trim());
    let sender = Background::start(&["generate", "--to", &to, "--records", "1M"]);
    // No process reads the pipe, so it is soon full.
    let stalled = wait_for("an output that is stalled", || {
        let (status, text) = get(&address, "/readyz");
        (status == 503).then_some(text)
    });
    assert!(stalled.contains(r#""state":"stalled""#), "{stalled}");
    let before = figures(&address);
    assert!(before[2] > 0, "{before:?}");
    assert_eq!(before[0], before[1] + before[2]);

    receiver.signal("TERM");
    let asked = Instant::now();
    wait_for_end(&mut receiver);
    let took = asked.elapsed();
    assert!(took < Duration::from_secs(3) + SLACK, "{took:?}");
    let (status, _, stderr) = receiver.end();
    assert_eq!(status.code(), Some(75), "{stderr}");
    let summary = read_json(Path::new(&path("summary")));
    assert_eq!(summary["ended_by"], "signal");
    // The figures were true: nothing was received since.
    assert_eq!(number(&summary["chunks"]), before[0]);
    assert_eq!(number(&summary["acknowledged"]), before[1]);
    assert_eq!(number(&summary["given_back"]), before[2]);
    let told = format!("{} chunks were given back", before[2]);
    assert!(stderr.contains(&told), "{stderr}");
    let told = format!("draining, {} chunks left, until ", before[2]);
    assert!(stderr.contains(&told), "{stderr}");
    drop(sender);
}

/// Fills the pipe of standard output (1) or error (2), so that the process cannot write there.
pub(crate) fn fill(process: &Background, descriptor: u8) {
    const O_NONBLOCK: i32 = 0o4000;
    let mut pipe = fs::OpenOptions::new()
        .write(true)
        .custom_flags(O_NONBLOCK)
        .open(format!("/proc/{}/fd/{descriptor}", process.pid()))
        .unwrap();
    while pipe.write_all(&[b'\n'; 4_096]).is_ok() {}
}

#[test]
fn a_stalled_standard_error_holds_up_no_shutdown() {
    let folder = tempfile::tempdir().unwrap();
    let (port, summary) = (folder.path().join("port"), folder.path().join("summary"));
    let output = folder.path().join("records");
    let mut receiver = Background::start(&[
        "receive",
        "--from",
        "tcp://127.0.0.1:0",
        "--format",
        "json",
        "--output",
        output.to_str().unwrap(),
        "--shutdown-timeout",
        "3s",
        "--port-file",
        port.to_str().unwrap(),
        "--summary",
        summary.to_str().unwrap(),
    ]);
    let address = wait_for("a port", || fs::read_to_string(&port).ok());
    fill(&receiver, 2);
    let to = format!("tcp://{}", address.trim());
    crate::support::output(&["generate", "--to", &to, "--records", "1000"]);
    receiver.signal("TERM");
    let asked = Instant::now();
    wait_for_end(&mut receiver);
    let took = asked.elapsed();
    assert!(took < Duration::from_secs(3) + SLACK, "{took:?}");
    let (status, _, _) = receiver.end();
    assert_eq!(status.code(), Some(0));
    assert_eq!(read_json(&summary)["records"], 1_000);
}

/// A command ends even if no process reads its result, with the code of an unfinished run.
#[test]
fn a_result_that_nobody_reads_holds_up_no_shutdown() {
    let folder = tempfile::tempdir().unwrap();
    let chunks = chunks(folder.path());
    let shown = ["--records", "100", "--format", "json"];
    let limit = ["--shutdown-timeout", "1s"];
    let mut inspect = Background::start(&[&["inspect", &chunks], &shown[..], &limit].concat());
    // It prints the whole document at once, which is more than a pipe holds.
    inspect.wait_for_output();
    inspect.signal("TERM");
    let asked = Instant::now();
    wait_for_end(&mut inspect);
    let took = asked.elapsed();
    assert!(took < Duration::from_secs(20), "{took:?}");
    assert_eq!(inspect.end().0.code(), Some(75));
}
