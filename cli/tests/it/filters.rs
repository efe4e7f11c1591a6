//! `--where` and `--fields` of the commands that pass records on.

use std::fs;

use serde_json::{Value, json};

use crate::accounts::sender_adds_up;
use crate::support::{baler, file_uri, json as run_json, json_lines, output, read_json};

/// Two types that share the field `id`, in lines of JSON.
const LINES: &str = r#"{"type":"shop.Order","id":1,"total":10,"customer":"Ada"}
{"type":"shop.Visit","id":2,"page":"/"}
{"type":"shop.Order","id":3,"total":30,"customer":"Bob"}
{"type":"shop.Order","id":4,"total":40,"customer":"Ada"}
"#;

/// A folder with the lines, and with chunks of them.
struct Shop {
    folder: tempfile::TempDir,
    lines: String,
    chunks: String,
}

impl Shop {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let lines = folder.path().join("shop.jsonl");
        fs::write(&lines, LINES).unwrap();
        let lines = format!("jsonl:{}", lines.display());
        let chunks = file_uri(&folder.path().join("chunks"));
        let small = ["--chunk-records", "2"];
        output(&[&["send", "--from", &lines, "--to", &chunks][..], &small].concat());
        Self {
            folder,
            lines,
            chunks,
        }
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    /// Returns the records that `receive` writes, without timestamps, and its summary, which adds
    /// up.
    fn receive(&self, from: &str, flags: &[&str]) -> (Vec<(String, Value)>, Value) {
        let summary = self.path("summary.json");
        let receive = ["receive", "--from", from, "--format", "json"];
        let files = ["--summary", summary.as_str()];
        let records = output(&[&receive[..], &files, flags].concat());
        let summary = read_json(summary.as_ref());
        receiver_adds_up(&summary);
        let records = json_lines(&records).into_iter().map(|record| {
            let name = record["type"].as_str().unwrap().to_owned();
            (name, record["fields"].clone())
        });
        (records.collect(), summary)
    }

    /// Returns the report of `send` with these flags, and the records that arrive.
    fn send(&self, from: &str, to: &str, flags: &[&str]) -> (Value, Vec<(String, Value)>) {
        let to = file_uri(self.path(to).as_ref());
        let send = ["send", "--from", from, "--to", &to, "--format", "json"];
        let report = run_json(&[&send[..], flags].concat());
        sender_adds_up(&report);
        let count = |value: &Value| value.as_u64().unwrap();
        assert_eq!(
            count(&report["source"]["records"]),
            count(&report["emitted"]) + count(&report["source"]["filtered"]),
            "{report}"
        );
        (report, self.receive(&to, &[]).0)
    }
}

fn receiver_adds_up(summary: &Value) {
    let count = |name: &str| summary[name].as_u64().unwrap();
    assert_eq!(
        count("records_received"),
        count("records") + count("records_filtered") + count("records_given_back"),
        "{summary}"
    );
    assert_eq!(
        count("chunks"),
        count("acknowledged") + count("given_back"),
        "{summary}"
    );
}

fn order(fields: Value) -> (String, Value) {
    ("shop.Order".to_owned(), fields)
}

fn visit(fields: Value) -> (String, Value) {
    ("shop.Visit".to_owned(), fields)
}

/// Returns the message of a command that ends with this code.
fn told(args: &[&str], code: i32) -> String {
    let run = baler(args).code(code);
    String::from_utf8(run.get_output().stderr.clone()).unwrap()
}

#[test]
fn receive_writes_records_for_which_the_condition_is_true_and_acknowledges_all() {
    let shop = Shop::new();
    let flags = ["--where", "total > 10 && customer == 'Ada'"];
    let (records, summary) = shop.receive(&shop.chunks, &flags);
    let fields = json!({"type": "shop.Order", "id": 4, "total": 40, "customer": "Ada"});
    assert_eq!(records, [order(fields)]);
    assert_eq!(summary["records_filtered"], 3);
    let (records, summary) = shop.receive(&shop.chunks, &["--where", "false", "--workers", "2"]);
    assert!(records.is_empty());
    assert_eq!(summary["records_filtered"], 4);
    assert_eq!(summary["acknowledged"], summary["chunks"]);
    let (records, _) = shop.receive(&shop.chunks, &["--where", "id > 2", "--count", "1"]);
    assert_eq!(records.len(), 1);
}

#[test]
fn receive_writes_the_chosen_fields_of_each_type() {
    let shop = Shop::new();
    let (records, summary) = shop.receive(&shop.chunks, &["--fields", "id,shop.Order.customer"]);
    assert_eq!(
        records,
        [
            order(json!({"id": 1, "customer": "Ada"})),
            visit(json!({"id": 2})),
            order(json!({"id": 3, "customer": "Bob"})),
            order(json!({"id": 4, "customer": "Ada"})),
        ]
    );
    assert_eq!(summary["records_filtered"], 0);
    // The condition sees all fields, and a type without the field keeps its records.
    let flags = ["--where", "id < 3", "--fields", "total"];
    let (records, _) = shop.receive(&shop.chunks, &flags);
    assert_eq!(records, [order(json!({"total": 10})), visit(json!({}))]);
    // No record of the type with this field passes, and it is known all the same.
    let flags = ["--where", "id == 1", "--fields", "page"];
    assert_eq!(shop.receive(&shop.chunks, &flags).0, [order(json!({}))]);
}

#[test]
fn chosen_fields_are_columns_of_csv_and_identities_stay() {
    let shop = Shop::new();
    let csv = shop.path("csv");
    let receive = ["receive", "--from", &shop.chunks, "--fields", "total"];
    output(&[&receive[..], &["--format", "csv", "--output", &csv]].concat());
    let orders = fs::read_to_string(format!("{csv}/shop.Order.csv")).unwrap();
    let totals = orders.lines().map(|line| line.rsplit(',').next().unwrap());
    assert_eq!(totals.collect::<Vec<_>>(), ["total", "10", "30", "40"]);
    assert_eq!(orders.lines().next(), Some("(timestamp),total"));
    let all = [
        "receive",
        "--from",
        &shop.chunks,
        "--format",
        "json",
        "--identity",
    ];
    let wide = json_lines(&output(&all));
    let narrow = [&all[..], &["--fields", "id", "--where", "id > 2"]].concat();
    let narrow = json_lines(&output(&narrow));
    assert_eq!(narrow.len(), 2);
    for (wide, narrow) in wide.iter().skip(2).zip(&narrow) {
        assert_eq!(wide["identity"], narrow["identity"]);
    }
}

#[test]
fn send_passes_on_what_was_chosen_from_a_log_and_from_a_medium() {
    let shop = Shop::new();
    let flags = ["--where", "id != 3", "--fields", "id,customer"];
    for (from, to) in [(&shop.lines, "from-log"), (&shop.chunks, "from-medium")] {
        let (report, records) = shop.send(from, to, &flags);
        assert_eq!(
            records,
            [
                order(json!({"id": 1, "customer": "Ada"})),
                visit(json!({"id": 2})),
                order(json!({"id": 4, "customer": "Ada"})),
            ]
        );
        assert_eq!(report["source"]["filtered"], 1, "{report}");
    }
    let (report, records) = shop.send(&shop.chunks, "nothing", &["--where", "id > 4"]);
    assert_eq!(report["source"]["filtered"], 4, "{report}");
    assert_eq!(report["source"]["acknowledged"], report["source"]["chunks"]);
    assert!(records.is_empty());
}

#[test]
fn replay_sends_what_was_chosen_as_a_new_producer() {
    let shop = Shop::new();
    let to = file_uri(shop.path("replayed").as_ref());
    let replay = ["replay", &shop.chunks, "--to", &to, "--format", "json"];
    let flags = ["--where", "id != 3", "--fields", "id,customer"];
    let replayed = run_json(&[&replay[..], &flags].concat());
    let expected = [
        order(json!({"id": 1, "customer": "Ada"})),
        visit(json!({"id": 2})),
        order(json!({"id": 4, "customer": "Ada"})),
    ];
    assert_eq!(shop.receive(&to, &[]).0, expected);
    let (sent, source) = (&replayed["sent"], &replayed["sent"]["source"]);
    sender_adds_up(sent);
    assert_eq!(
        (&sent["emitted"], &source["filtered"]),
        (&json!(3), &json!(1))
    );
    assert_eq!(source["records"], replayed["records"]);
    assert_eq!(source["acknowledged"], replayed["decodable"]);
    // The originals join the chosen records, and the records are chosen again. Nothing is dropped
    // as a copy.
    run_json(&replay);
    run_json(&[&replay[..], &flags].concat());
    let (records, summary) = shop.receive(&to, &[]);
    assert_eq!(records.len(), 3 + 4 + 3);
    assert_eq!(
        (&summary["duplicates_within_reader"], &summary["conflicts"]),
        (&json!(0), &json!(0))
    );
}

#[test]
fn a_filtered_replay_of_a_quarantine_leaves_the_quarantine_as_it_is() {
    let shop = Shop::new();
    let aside = shop.path("aside");
    let narrow = format!(
        "{}?max_chunk_bytes=64",
        file_uri(shop.path("narrow").as_ref())
    );
    let relay = ["relay", "--from", &shop.chunks, "--to", &narrow];
    told(&[&relay[..], &["--quarantine", &aside]].concat(), 65);
    // A chunk that never decodes.
    fs::write(format!("{aside}/0000000000-0000000000.chunk"), b"no chunk").unwrap();
    let files = || {
        let mut files: Vec<_> = fs::read_dir(&aside)
            .unwrap()
            .map(|it| it.unwrap().file_name())
            .collect();
        files.sort();
        files
    };
    let before = files();
    let to = file_uri(shop.path("to").as_ref());
    let replay = [
        "replay",
        aside.as_str(),
        "--to",
        &to,
        "--where",
        "total >= 30",
    ];
    let errors = told(&[&replay[..], &["--remove"]].concat(), 2);
    assert!(
        errors.contains("'--where <EXPRESSION>' cannot be used with '--remove'"),
        "{errors}"
    );
    told(&replay, 65);
    assert_eq!(files(), before);
    let (records, _) = shop.receive(&to, &["--fields", "id"]);
    assert_eq!(records, [order(json!({"id": 3})), order(json!({"id": 4}))]);
}

#[test]
fn an_unknown_field_is_named_with_the_fields_there_are() {
    let shop = Shop::new();
    let to = file_uri(shop.path("to").as_ref());
    let fields = ["--fields", "id,totl"];
    for args in [
        &["receive", "--from", &shop.chunks, "--format", "json"][..],
        &["send", "--from", &shop.chunks, "--to", &to],
        &["send", "--from", &shop.lines, "--to", &to],
        &["replay", &shop.chunks, "--to", &to],
    ] {
        let errors = told(&[args, &fields].concat(), 65);
        assert!(
            errors.contains("no record type has totl")
                && errors.contains("shop.Order: type, id, total, customer")
                && errors.contains("shop.Visit: type, id, page"),
            "{errors}"
        );
    }
}

#[test]
fn a_wrong_expression_or_list_is_refused_before_anything_is_read() {
    let from = "file:///nowhere/at/all";
    for args in [
        &["receive", "--from", from][..],
        &["send", "--from", from, "--to", "null:"],
        &["replay", from, "--to", "null:"],
    ] {
        let errors = told(&[args, &["--where", "id ="]].concat(), 78);
        assert!(
            errors.contains("--where `id =`: line 1, column"),
            "{errors}"
        );
        let errors = told(&[args, &["--fields", "id,,page"]].concat(), 78);
        assert!(
            errors.contains("--fields `id,,page`: a name is empty"),
            "{errors}"
        );
    }
}

#[test]
fn records_that_the_condition_cannot_judge_are_counted_with_the_reason() {
    let shop = Shop::new();
    let to = file_uri(shop.path("to").as_ref());
    for args in [
        &["receive", "--from", &shop.chunks][..],
        &["send", "--from", &shop.chunks, "--to", &to],
        &["send", "--from", &shop.lines, "--to", &to],
        &["replay", &shop.chunks, "--to", &to],
    ] {
        let errors = told(&[args, &["--where", "page + 1 == 2"]].concat(), 65);
        let expected = "--where cannot judge 1 record: `+` does not take (string, int); page (string) is \"/\"";
        assert!(errors.contains(expected), "{errors}");
    }
}
