//! `sweep` from outside: short sweeps whose figures mean nothing, but add up.

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::{baler, command, in_browser, json, json_lines, output, wait_for, workspace};

/// Short enough to test only the program; longer on a machine that does other things, too.
const SHORT: [&str; 5] = [
    "sweep",
    "--seconds=1",
    "--warm-up=200ms",
    "--rate=500",
    "--repetitions=2",
];

fn sweep(to: &str, results: &Path, more: &[&str]) -> Vec<String> {
    let mut args: Vec<String> = SHORT.iter().map(ToString::to_string).collect();
    args.push(format!("--to={to}"));
    args.push(format!("--results={}", results.display()));
    args.extend(more.iter().map(ToString::to_string));
    args
}

fn words(args: &[String]) -> Vec<&str> {
    args.iter().map(String::as_str).collect()
}

/// Checks every cell. `has_client`: the client library alone is measured, too.
fn check(document: &Value, sizes: &[u64], has_client: bool) {
    assert!(document["machine"]["cpu"].is_string());
    assert!(
        document["command"]
            .as_str()
            .unwrap()
            .starts_with("baler sweep")
    );
    assert!(document.get("recommended").is_some());
    let cells = document["cells"].as_array().unwrap();
    let found: Vec<_> = cells
        .iter()
        .filter_map(|cell| cell["chunk_records"].as_u64())
        .collect();
    assert_eq!(found, sizes);
    let rivals: Vec<_> = cells
        .iter()
        .filter(|cell| cell["chunk_records"].is_null())
        .collect();
    let ways: Vec<_> = rivals.iter().map(|cell| &cell["way"]).collect();
    let expected: &[&str] = if has_client {
        &["pipelined", "awaiting"]
    } else {
        &[]
    };
    assert_eq!(ways, expected);
    for cell in cells {
        assert_eq!(cell["failure"], Value::Null, "{cell}");
        assert_eq!(
            (cell["rate"].as_f64(), cell["lost"].as_u64()),
            (Some(500.0), Some(0)),
            "{cell}"
        );
        for name in [
            "writer_cpu_seconds_per_second",
            "wire_bytes_per_second",
            "latency_ms_p50",
            "latency_ms_p99",
        ] {
            let of = |part: &str| cell[name][part].as_f64().unwrap();
            assert!(of("mean") > 0.0, "{name}: {cell}");
            assert!(
                of("low") <= of("mean") && of("mean") <= of("high"),
                "{name}: {cell}"
            );
        }
        for name in ["offered_rate", "achieved_rate"] {
            assert!(cell[name].as_f64().unwrap() > 0.0, "{name}: {cell}");
        }
        assert!(cell["saturated"].is_boolean());
        // A row has 175 bytes, a record in a chunk fewer; each is sent once.
        let bytes = cell["wire_bytes_per_second"]["mean"].as_f64().unwrap();
        assert!(bytes > 2_000.0 && bytes < 5_000_000.0, "{cell}");
    }
    let bytes = |cell: &Value| cell["wire_bytes_per_second"]["mean"].as_f64().unwrap();
    let largest = cells.last().unwrap();
    if has_client {
        assert!(bytes(largest) < 0.5 * bytes(rivals[0]), "{largest}");
    }
}

#[test]
fn a_sweep_over_tcp_prints_what_programs_expect_and_keeps_a_page_that_loads_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let args = sweep(
        "tcp://127.0.0.1:0",
        folder.path(),
        &[
            "--chunk-sizes=32,64,128",
            "--container=native,kieker",
            "--format=json",
        ],
    );
    let document = json(&words(&args));
    check(&document, &[32, 64, 128, 32, 64, 128], false);
    assert_eq!(document["models"][0]["compression"], "none");
    // Every size between the smallest and the largest was measured, so the recommended one was, too:
    // its figures are those of its row.
    let recommended = &document["recommended"];
    assert_eq!(recommended["measured"], true, "{recommended}");
    let mut cells = document["cells"].as_array().unwrap().iter();
    let cell = cells
        .find(|cell| cell["chunk_records"] == recommended["chunk_records"])
        .unwrap();
    for figure in [
        "latency_ms_p99",
        "wire_bytes_per_second",
        "writer_cpu_seconds_per_second",
    ] {
        assert_eq!(recommended[figure], cell[figure]["mean"], "{recommended}");
    }
    let page = fs::read_to_string(folder.path().join("sweep.html")).unwrap();
    assert_eq!(page.matches("<svg").count(), 3);
    let inside = page.replace("http://www.w3.org/2000/svg", "");
    for outside in ["http", "src=", "href=", "<script", "@import"] {
        assert!(!inside.contains(outside), "{outside}");
    }
    for name in ["sweep.json", "sweep.txt", "sweep-runs.jsonl"] {
        assert!(folder.path().join(name).exists(), "{name}");
    }
}

#[test]
fn without_consumers_writing_alone_is_measured_in_chunks_of_a_size_or_a_chosen_one() {
    let folder = tempfile::tempdir().unwrap();
    let written = folder.path().join("written");
    let file = format!("file:{}", written.display());
    for to in ["null:", &file] {
        let more = [
            "--consumers=0",
            "--chunk-sizes=auto,32",
            "--container=native,kieker",
            "--format=json",
        ];
        let document = json(&words(&sweep(to, folder.path(), &more)));
        assert_eq!(document["records"], Value::Null);
        let cells = document["cells"].as_array().unwrap();
        let ways: Vec<_> = cells.iter().map(|cell| &cell["way"]).collect();
        assert_eq!(ways, ["baler", "kieker", "auto"]);
        for cell in cells {
            assert_eq!(cell["failure"], Value::Null, "{cell}");
            assert_eq!(cell["lost"], 0, "{cell}");
            assert_eq!(cell["latency_ms_p99"], Value::Null, "{cell}");
            let achieved = cell["achieved_rate"].as_f64().unwrap();
            assert!(achieved > 0.0, "{cell}");
        }
    }
    assert!(fs::read_dir(&written).unwrap().count() > 0);
}

#[test]
fn records_of_a_source_are_measured_instead_of_calls() {
    let folder = tempfile::tempdir().unwrap();
    let calls = format!("file:{}", folder.path().join("calls").display());
    output(&["generate", "--to", &calls, "--records", "300"]);
    let (to, has_client) = match cfg!(feature = "kafka") {
        true => ("kafka+mock:own", true),
        false => ("tcp://127.0.0.1:0", false),
    };
    let from = format!("--records-from={calls}");
    let more = [&from, "--chunk-sizes=1,64", "--format=json"];
    let args = sweep(to, folder.path(), &more);
    let document = json(&words(&args));
    check(&document, &[1, 64], has_client);
    let records = &document["records"];
    let source = records["from"].as_str().unwrap();
    assert!(source.ends_with("calls"), "{records}");
    assert!(records["records"].as_u64().unwrap() >= 300, "{records}");
    let mean = records["mean_bytes"].as_f64().unwrap();
    assert!(mean > 150.0 && mean < 250.0, "{records}");
    for name in ["sweep.txt", "sweep.html"] {
        let text = fs::read_to_string(folder.path().join(name)).unwrap();
        assert!(text.contains("Sent again and again: records of "), "{text}");
    }
}

#[test]
fn lines_are_a_source_of_records_and_one_without_records_says_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let lines = folder.path().join("lines");
    let from = format!("--records-from=jsonl:{}", lines.display());
    let more = [&from, "--consumers=0", "--chunk-sizes=32", "--format=json"];
    let args = sweep("null:", folder.path(), &more);
    fs::write(&lines, "").unwrap();
    let refused = |args: &[String], code, said: &str| {
        let assert = baler(&words(args)).code(code);
        let errors = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
        assert!(errors.contains(said), "{errors}");
    };
    refused(&args, 65, "send some there first");
    fs::write(&lines, "{\"price\": 7}\nno record\n{\"price\": 8}\n").unwrap();
    let document = json(&words(&args));
    assert_eq!(document["records"]["records"], 2);
    let cell = &document["cells"][0];
    assert_eq!((&cell["failure"], &cell["lost"]), (&Value::Null, &0.into()));
    let same = "file:somewhere";
    let args = sweep(same, folder.path(), &["--records-from", same]);
    refused(&args, 78, "use another --to");
}

#[test]
#[cfg(feature = "kafka")]
fn a_sweep_needs_no_broker_and_its_table_fits_100_columns() {
    let folder = tempfile::tempdir().unwrap();
    let args = sweep(
        "kafka+mock:sizes",
        folder.path(),
        &["--chunk-sizes=1,128", "--recommend"],
    );
    let text = output(&words(&args));
    for line in text.lines().filter(|line| !line.starts_with("report: ")) {
        assert!(line.chars().count() <= 100, "{line}");
    }
    for name in ["pipelined", "awaiting", "128", "report: "] {
        assert!(text.contains(name), "{text}");
    }
    check(
        &crate::support::read_json(&folder.path().join("sweep.json")),
        &[1, 128],
        true,
    );
}

/// The mock cluster forgets chunks that are not read in time. Without a rate, the load waits for
/// the readers.
#[test]
#[cfg(feature = "kafka")]
fn a_load_without_a_rate_loses_nothing_at_the_mock_cluster() {
    let folder = tempfile::tempdir().unwrap();
    let more = ["--chunk-sizes=256", "--format=json", "--consumers=0,1"];
    let args = sweep("kafka+mock:full", folder.path(), &more);
    let args: Vec<String> = args
        .into_iter()
        .map(|arg| arg.replace("--rate=500", "--rate=max"))
        .collect();
    let document = json(&words(&args));
    let cells = document["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 6);
    for cell in cells {
        assert_eq!(cell["failure"], Value::Null, "{cell}");
        assert_eq!(cell["saturated"], false, "{cell}");
        assert_eq!(cell["lost"], 0, "{cell}");
        assert!(cell["achieved_rate"].as_f64().unwrap() > 0.0, "{cell}");
    }
}

#[test]
#[cfg(feature = "amqp")]
fn a_sweep_over_rabbitmq_loses_nothing_and_shows_no_password() {
    let node = baler_connector_testkit::faults::RabbitMqNode::start().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let uri = node.uri("?queue=sweep&queue_type=classic");
    // The records are those of another queue, which keeps them.
    let calls = node.uri("?queue=calls&queue_type=classic");
    let each = ["--records", "300", "--chunk-records", "1"];
    output(&[&["generate", "--to", &calls][..], &each].concat());
    let from = format!("--records-from={calls}");
    let more = [&from, "--chunk-sizes=16,512", "--format=json"];
    let args = sweep(&uri, folder.path(), &more);
    let document = json(&words(&args));
    check(&document, &[16, 512], true);
    assert!(document["records"]["records"].as_u64().unwrap() >= 300);
    let count = ["--count", "300", "--format", "json"];
    let kept = output(&[&["receive", "--from", &calls][..], &count].concat());
    assert_eq!(kept.lines().count(), 300);
    for name in ["sweep.json", "sweep.html", "sweep-runs.jsonl"] {
        let text = fs::read_to_string(folder.path().join(name)).unwrap();
        assert!(!text.contains("guest:guest"), "{name}");
    }
}

#[test]
fn a_sweep_that_was_killed_goes_on_where_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let args = sweep(
        "tcp://127.0.0.1:0",
        folder.path(),
        &[
            "--chunk-sizes=32",
            "--no-baseline",
            "--repetitions=3",
            "--format=json",
        ],
    );
    let args: Vec<String> = args
        .into_iter()
        .filter(|arg| arg != "--repetitions=2")
        .collect();
    let mut killed = command()
        .args(&args)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let kept = folder.path().join("sweep-runs.jsonl");
    let lines = || {
        fs::read_to_string(&kept)
            .unwrap_or_default()
            .lines()
            .count()
    };
    // The plan, and two runs of six.
    wait_for("two runs", || (lines() >= 3).then_some(()));
    killed.kill().unwrap();
    killed.wait().unwrap();
    // The number of each run, and its CPU time, which no other run has exactly.
    let runs = || -> Vec<(u64, Value)> {
        let text = fs::read_to_string(&kept).unwrap();
        let lines = text.lines().skip(1).filter(|line| line.ends_with("}}"));
        json_lines(&lines.collect::<Vec<_>>().join("\n"))
            .into_iter()
            .map(|run| {
                let sample = &run["result"]["Ok"];
                (
                    run["number"].as_u64().unwrap(),
                    sample["figures"]["writer_cpu_seconds_per_second"].clone(),
                )
            })
            .collect()
    };
    let before = runs();
    assert!((2..6).contains(&before.len()), "{before:?}");
    let document = json(&words(&args));
    assert_eq!(runs()[..before.len()], before);
    let after = fs::read_to_string(&kept).unwrap();
    // One line each: the plan, six runs, the end.
    assert_eq!(after.lines().count(), 8);
    assert_eq!(document["cells"][0]["repetitions"], 3);
    // Another command is another sweep.
    let mut other = args;
    other.push("--seed=2".to_owned());
    json(&words(&other));
    assert_ne!(runs()[..before.len()], before);
}

#[test]
fn a_broker_that_is_not_there_is_named_at_once() {
    // The port is bound and released, so no process listens there.
    let port = TcpListener::bind("127.0.0.1:0")
        .and_then(|listener| listener.local_addr())
        .unwrap()
        .port();
    let folder = tempfile::tempdir().unwrap();
    let mut brokers = Vec::new();
    if cfg!(feature = "amqp") {
        brokers.push(format!("amqp://guest:secret@127.0.0.1:{port}?queue=sweep"));
    }
    if cfg!(feature = "kafka") {
        brokers.push(format!("kafka://127.0.0.1:{port}/sweep"));
    }
    for to in brokers {
        let began = Instant::now();
        let assert = baler(&words(&sweep(&to, folder.path(), &[]))).code(69);
        assert!(began.elapsed() < Duration::from_secs(20), "{to}");
        let errors = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
        assert!(errors.contains(&format!("127.0.0.1:{port}")), "{errors}");
        assert!(!errors.contains("secret"), "{errors}");
    }
}

#[test]
fn what_cannot_be_swept_is_said_before_anything_is_measured() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "").unwrap();
    let results = folder.path();
    let no_folder = file.join("results");
    for (to, results, consumers, said, code) in [
        ("null:", results, "1", "--consumers must be 0", 78),
        (
            "tcp://127.0.0.1:0",
            results,
            "0",
            "--consumers must be 1",
            78,
        ),
        ("nonsense://x", results, "1", "no known scheme", 78),
        (
            "tcp://127.0.0.1:0",
            results,
            "1,2",
            "--consumers must be 1",
            78,
        ),
        ("tcp://127.0.0.1:0", &no_folder, "1", "file/results", 74),
    ] {
        let consumers = format!("--consumers={consumers}");
        let args = sweep(to, results, &[&consumers]);
        let assert = baler(&words(&args)).code(code);
        let errors = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
        assert!(errors.contains(said), "{errors}");
    }
}

/// Returns the content of the page as a user sees it.
const LOOK: &str = r#"
const texts = [...document.querySelectorAll("svg text")];
const inside = (text) => {
  const [box, frame] = [text, text.closest("svg")].map((it) => it.getBoundingClientRect());
  return box.left >= frame.left - 1 && box.right <= frame.right + 1
    && box.top >= frame.top - 1 && box.bottom <= frame.bottom + 1;
};
const heights = texts.map((text) => text.getBoundingClientRect().height);
return {
  plots: [...document.querySelectorAll("svg")].map((svg) => svg.getBoundingClientRect().width),
  lines: document.querySelectorAll("svg polyline, svg polygon").length,
  texts: texts.length,
  smallest: Math.min(...heights),
  outside: texts.filter((text) => !inside(text)).map((text) => text.textContent),
  width: document.documentElement.scrollWidth,
};"#;

#[test]
fn the_report_is_readable_in_a_browser() {
    let folder = tempfile::tempdir().unwrap();
    let args = sweep(
        "tcp://127.0.0.1:0",
        folder.path(),
        &["--chunk-sizes=8,64,512"],
    );
    output(&words(&args));
    let page = fs::read_to_string(folder.path().join("sweep.html")).unwrap();
    for width in [1_280, 500] {
        let seen = in_browser(&page, width, LOOK);
        let plots = seen["plots"].as_array().unwrap();
        assert_eq!(plots.len(), 3, "{seen}");
        assert!(
            plots.iter().all(|width| width.as_f64().unwrap() > 320.0),
            "{seen}"
        );
        assert!(
            seen["lines"].as_u64().unwrap() >= 6 && seen["texts"].as_u64().unwrap() > 20,
            "{seen}"
        );
        assert!(seen["smallest"].as_f64().unwrap() >= 12.0, "{seen}");
        assert_eq!(seen["outside"], serde_json::json!([]));
        assert!(seen["width"].as_f64().unwrap() <= width.into(), "{seen}");
    }
}

#[test]
fn a_quick_study_of_peers_over_rabbitmq_has_its_figures_and_names_what_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let study = Command::new(workspace("scripts/study"))
        .args(["--quick", "--binary", env!("CARGO_BIN_EXE_baler"), "--out"])
        .arg(folder.path())
        .arg("peers")
        .env_remove("KAFKA_BOOTSTRAP")
        .env_remove("KIEKER_JAR")
        .output()
        .unwrap();
    assert!(study.status.success(), "{study:?}");
    let table = String::from_utf8(study.stdout).unwrap();
    assert!(table.lines().all(|line| line.len() <= 100), "{table}");
    assert!(table.contains("Kieker is not there"), "{table}");
    let kept = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    assert_eq!(kept("peers.txt"), table);
    let result: Value = serde_json::from_str(&kept("peers.json")).unwrap();
    assert_eq!(result["kafka"], "mock");
    let rows = result["rows"].as_array().unwrap();
    // Without a broker nothing is read back, and the binaries of benches/ may not be there.
    let measured = rows.iter().filter(|row| row["baler"]["median"].is_number());
    assert!(measured.count() >= 14, "{table}");
    assert!(rows.iter().all(|row| row["met"].is_null()), "{table}");
}
