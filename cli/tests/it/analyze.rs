//! `analyze`: the results of Kieker's trace analysis of a log, from every kind of source, in every
//! form.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::support::{
    baler, file_uri, in_browser, json as document, json_lines, output, real_log, workspace,
};

/// Returns the dependencies of the log of 2010, by the last parts of the names.
fn dependencies(document: &Value) -> Vec<(String, String, u64)> {
    let name = |value: &Value| {
        let path = value.as_str().unwrap().split('(').next().unwrap();
        path.rsplit('.').next().unwrap().to_owned()
    };
    let edges = document["dependencies"].as_array().unwrap().iter();
    let edges = edges.map(|it| {
        (
            name(&it["from"]),
            name(&it["to"]),
            it["count"].as_u64().unwrap(),
        )
    });
    let mut edges: Vec<_> = edges.collect();
    edges.sort();
    edges
}

fn kieker() -> Vec<(String, String, u64)> {
    [
        ("'Entry'", "searchBook"),
        ("getOffers", "getBook"),
        ("searchBook", "getBook"),
        ("searchBook", "getOffers"),
    ]
    .map(|(from, to)| (from.to_owned(), to.to_owned(), 1_635))
    .to_vec()
}

#[test]
fn a_log_gives_the_results_of_kieker_and_all_files() {
    let folder = tempfile::tempdir().unwrap();
    let (files, page) = (folder.path().join("out"), folder.path().join("page.html"));
    let from = real_log();
    let args = ["analyze", "--from", &from, "--format", "json"];
    let files_and_page = [
        "--output",
        files.to_str().unwrap(),
        "--report",
        page.to_str().unwrap(),
    ];
    let result = document(&[&args[..], &files_and_page].concat());
    let traces = &result["traces"];
    assert_eq!(
        (&traces["valid"], &traces["invalid"]),
        (&json!(1_635), &json!({}))
    );
    for zero in ["incomplete", "repaired", "late"] {
        assert_eq!(traces[zero], 0, "{zero}");
    }
    assert_eq!(dependencies(&result), kieker());
    let operations = result["operations"].as_array().unwrap();
    let calls: u64 = operations
        .iter()
        .map(|it| it["count"].as_u64().unwrap())
        .sum();
    assert_eq!((operations.len(), calls), (3, 6_540));
    assert_eq!(result["classes"].as_array().unwrap().len(), 1);
    assert_eq!(result["traces"]["classes_with_hosts"], 4);

    let read = |name: &str| fs::read_to_string(files.join(name)).unwrap();
    let list = json_lines(&read("traces.jsonl"));
    assert_eq!(list.len(), 1_635);
    assert!(
        list.iter()
            .all(|trace| trace["verdict"] == "valid" && trace["calls"] == 4)
    );
    for name in [
        "components",
        "operations",
        "hosts",
        "host-components",
        "call-tree",
    ] {
        assert!(read(&format!("{name}.dot")).contains("1635"), "{name}");
        assert!(
            read(&format!("{name}.graphml")).contains(">1635<"),
            "{name}"
        );
        assert!(read(&format!("{name}.svg")).contains("1635"), "{name}");
    }
    assert_eq!(read("class-1.puml").matches(" -> ").count(), 4);
    assert!(read("class-1.svg").contains("getOffers"));
    assert_eq!(read("flame.folded").lines().count(), 4);
    assert_eq!(json_lines(&read("classes.jsonl"))[0]["traces"], 1_635);
    let page = fs::read_to_string(page).unwrap();
    assert!(page.contains("searchBook") && !page.contains("/*DATA*/"));

    let table = output(&args[..3]);
    assert!(
        table.contains("Catalog.getBook") && table.contains("1,635"),
        "{table}"
    );
}

#[test]
fn a_folder_of_chunks_and_json_lines_give_the_same_and_nothing_is_taken() {
    let folder = tempfile::tempdir().unwrap();
    let uri = file_uri(&folder.path().join("chunks"));
    output(&["send", "--from", &real_log(), "--to", &uri]);
    let lines = folder.path().join("lines");
    let consumer = format!("{uri}?consumer=billing");
    for _ in 0..2 {
        let result = document(&["analyze", "--from", &consumer, "--format", "json"]);
        assert_eq!(dependencies(&result), kieker());
    }
    let received = output(&["receive", "--from", &consumer, "--format", "json"]);
    let flat = json_lines(&received).into_iter().map(|record| {
        let mut line = record["fields"].clone();
        line["type"] = record["type"].clone();
        format!("{line}\n")
    });
    fs::write(&lines, flat.collect::<String>()).unwrap();
    let from = format!("jsonl:{}", lines.to_str().unwrap());
    let result = document(&["analyze", "--from", &from, "--format", "json"]);
    assert_eq!(dependencies(&result), kieker());
    let follow = [
        "analyze",
        "--from",
        &uri,
        "--follow",
        "--idle-timeout",
        "200ms",
    ];
    let result = document(&[&follow[..], &["--format", "json"]].concat());
    assert_eq!(dependencies(&result), kieker());
}

#[test]
fn filters_choose_traces_types_times_and_records() {
    let from = real_log();
    let analyze = |flags: &[&str]| {
        let args = ["analyze", "--from", &from, "--format", "json"];
        document(&[&args[..], flags].concat())["traces"].clone()
    };
    let one = analyze(&["--trace", "6488138950668976129", "6488138950668976130"]);
    assert_eq!((&one["valid"], &one["records"]), (&json!(2), &json!(8)));
    assert_eq!(analyze(&["--type", "Nothing"])["records"], 0);
    let roots = analyze(&["--where", "ess == 0"]);
    assert_eq!(
        (&roots["valid"], &roots["records"]),
        (&json!(1_635), &json!(1_635))
    );
    let cut = analyze(&["--where", "ess != 1"]);
    assert_eq!(cut["invalid"], json!({ "order_gap": 1_635 }));
    assert_eq!(analyze(&["--until", "2010-08-30T08:00:00Z"])["records"], 0);
    assert_eq!(
        analyze(&["--since", "2010-08-30T08:00:00Z"])["valid"],
        1_635
    );
    let tight = analyze(&["--max-trace-duration", "1us"]);
    assert_eq!(tight["invalid"], json!({ "max_duration": 1_635 }));
    for (flags, message) in [
        (["--where", "ess =="], "line 1, column"),
        (["--from", "kieker-log:/nowhere"], "/nowhere"),
    ] {
        let flags = [&["analyze"], &flags[..]].concat();
        let from: &[&str] = if flags[1] == "--from" {
            &[]
        } else {
            &["--from", "null:"]
        };
        let run = baler(&[&flags[..], from].concat()).failure();
        let told = String::from_utf8(run.get_output().stderr.clone()).unwrap();
        assert!(told.contains(message), "{told}");
    }
}

#[test]
fn ends_of_calls_that_are_missing_are_repaired_when_asked() {
    let log = workspace("analysis/tests/data/kieker/trace-events-2014-incomplete");
    let from = format!("kieker-log:{}", log.to_str().unwrap());
    let args = ["analyze", "--from", &from, "--format", "json"];
    let traces = document(&args)["traces"].clone();
    assert_eq!(
        (&traces["valid"], &traces["incomplete"]),
        (&json!(0), &json!(2))
    );
    assert_eq!(traces["incomplete_reasons"], json!({ "after_missing": 2 }));
    let traces = document(&[&args[..], &["--repair"]].concat())["traces"].clone();
    assert_eq!(
        (&traces["valid"], &traces["repaired"]),
        (&json!(2), &json!(2))
    );
}

/// Returns the document without the fields that name the source.
fn found(mut document: Value) -> Value {
    let fields = document.as_object_mut().unwrap();
    for name in ["from", "records", "refused"] {
        fields.remove(name);
    }
    document
}

#[test]
fn partial_results_add_up_to_the_whole() {
    let folder = tempfile::tempdir().unwrap();
    let from = real_log();
    let args = ["analyze", "--from", &from, "--format", "json"];
    let paths = ["even", "odd"].map(|name| folder.path().join(name));
    let paths = paths.each_ref().map(|path| path.to_str().unwrap());
    for (path, own) in paths.iter().zip(["traceId % 2 == 0", "traceId % 2 != 0"]) {
        let part = document(&[&args[..], &["--where", own, "--partial", path]].concat());
        let valid = part["traces"]["valid"].as_u64().unwrap();
        assert!((800..850).contains(&valid), "{valid}");
    }
    let page = folder.path().join("page.html");
    let merge = [
        "analyze",
        "--format",
        "json",
        "--report",
        page.to_str().unwrap(),
        "--merge",
    ];
    let merged = document(&[&merge[..], &paths].concat());
    assert_eq!(merged["records"], 6_540);
    assert_eq!(found(merged), found(document(&args)));
    assert!(fs::read_to_string(page).unwrap().contains("searchBook"));

    let whole = fs::read(paths[0]).unwrap();
    fs::write(paths[0], &whole[..whole.len() / 2]).unwrap();
    let run = baler(&["analyze", "--merge", paths[1], paths[0]]).code(65);
    let told = String::from_utf8(run.get_output().stderr.clone()).unwrap();
    assert!(
        told.contains(paths[0]) && !told.contains(paths[1]),
        "{told}"
    );
    let run = baler(&["analyze", "--from", "null:", "--merge", paths[1]]).failure();
    let told = String::from_utf8(run.get_output().stderr.clone()).unwrap();
    assert!(
        told.contains("--merge") && told.contains("--from"),
        "{told}"
    );
}

#[test]
fn a_consumer_goes_on_with_its_partial_results() {
    let folder = tempfile::tempdir().unwrap();
    let uri = file_uri(&folder.path().join("chunks"));
    let (from, partial) = (
        format!("{uri}?consumer=traces"),
        folder.path().join("partial"),
    );
    let follow = [
        "analyze",
        "--follow",
        "--idle-timeout",
        "200ms",
        "--format",
        "json",
    ];
    let args = ["--from", &from, "--partial", partial.to_str().unwrap()];
    for sent in 1..=2 {
        // The second time each record is a copy, in another chunk.
        output(&["send", "--from", &real_log(), "--to", &uri]);
        // The log's 6,540 calls, and a record about the log.
        for records in [6_541, 0] {
            let result = document(&[&follow[..], &args].concat());
            assert_eq!(result["records"], records, "each chunk is read once");
            assert_eq!(result["traces"]["copies"], (sent - 1) * 6_540);
            assert_eq!(dependencies(&result), kieker());
        }
    }
}

/// Reads the page as a user sees it: at first, after a search, after a filter by time, and after
/// Clear.
const LOOK: &str = r##"
const count = (what) => document.querySelectorAll(what).length;
const look = () => ({ operations: count("#rows tr"), bars: count("#histogram rect"),
  nodes: count("#graph .node"), edges: count("#graph .edge"), found: count("#graph .hit"),
  traces: count("#traces details") });
const type = (id, text) => {
  document.getElementById(id).value = text;
  document.getElementById(id).dispatchEvent(new Event("input"));
  return look();
};
const [all, width] = [look(), document.documentElement.scrollWidth];
const texts = [...document.querySelectorAll("#graph text")].map((it) => it.getBoundingClientRect());
const meet = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
const covered = texts.filter((a, i) => texts.slice(i + 1).some((b) => meet(a, b))).length;
const tiles = [...document.querySelectorAll("#cards div")];
const cut = tiles.filter((it) => it.scrollWidth > it.clientWidth).length;
const [search, nothing] = [type("search", WORD), type("search", "no such name")];
document.getElementById("clear").click();
const [cleared, least] = [look(), type("least", "1e9")];
return { all, search, nothing, cleared, least, width, covered, cut };"##;

/// Opens a page, and searches for a word that one component has.
fn looked_at(page: &Path, word: &str) {
    let page = fs::read_to_string(page).unwrap();
    let script = LOOK.replace("WORD", &format!("\"{word}\""));
    // A phone's width: headless Chromium has no narrower window than 500 pixels.
    for width in [1_280, 500] {
        let seen = in_browser(&page, width, &script);
        assert!(seen["width"].as_u64().unwrap() <= width.into(), "{seen}");
        assert_eq!(
            (&seen["covered"], &seen["cut"]),
            (&json!(0), &json!(0)),
            "{seen}"
        );
        let all = &seen["all"];
        for (name, least) in [
            ("operations", 3),
            ("bars", 1),
            ("nodes", 3),
            ("edges", 2),
            ("traces", 5),
        ] {
            assert!(all[name].as_u64().unwrap() >= least, "{name}: {seen}");
        }
        assert_eq!(
            (&all["found"], all),
            (&json!(0), &seen["cleared"]),
            "{seen}"
        );
        let search = &seen["search"];
        assert!(search["found"].as_u64().unwrap() >= 1, "{seen}");
        let found = search["operations"].as_u64().unwrap();
        assert!(
            found >= 1 && found < all["operations"].as_u64().unwrap(),
            "{seen}"
        );
        for (filter, name) in [
            ("nothing", "operations"),
            ("nothing", "found"),
            ("least", "operations"),
        ] {
            assert_eq!(seen[filter][name], 0, "{seen}");
        }
    }
}

#[test]
fn the_page_of_a_log_is_searched_and_filtered_in_a_browser() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("page.html");
    output(&[
        "analyze",
        "--from",
        &real_log(),
        "--report",
        page.to_str().unwrap(),
    ]);
    looked_at(&page, "catalog");
}

#[test]
fn the_demo_writes_a_report_that_a_browser_shows() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("report.html");
    output(&["demo", "--seconds", "1", "--report", page.to_str().unwrap()]);
    looked_at(&page, "frontend");
    let page = fs::read_to_string(page).unwrap();
    assert!(page.contains("frontend") && page.contains("'Entry'"));
}
