//! Filters and sinks look into values and lines that are kept as JSON text.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;

use serde_json::{Value, json};

use crate::support::{baler, file_uri, json_lines, output, read_json};

/// A folder with chunks of JSON lines.
struct Lines {
    folder: tempfile::TempDir,
    chunks: String,
}

impl Lines {
    fn new(lines: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("in.jsonl");
        fs::write(&path, lines).unwrap();
        let chunks = file_uri(&folder.path().join("chunks"));
        let from = format!("jsonl:{}", path.display());
        output(&["send", "--from", &from, "--to", &chunks]);
        Self { folder, chunks }
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    /// Returns the fields of the records that pass.
    fn receive(&self, flags: &[&str], code: i32) -> Vec<Value> {
        let receive = ["receive", "--from", &self.chunks, "--format", "json"];
        let run = baler(&[&receive[..], flags].concat()).code(code);
        let text = String::from_utf8(run.get_output().stdout.clone()).unwrap();
        let records = json_lines(&text).into_iter();
        records.map(|record| record["fields"].clone()).collect()
    }

    /// Returns the rows of the CSV files by their names, without timestamps.
    fn csv(&self, flags: &[&str]) -> Vec<(String, Vec<String>)> {
        let folder = self.path("csv");
        let receive = ["receive", "--from", &self.chunks, "--format", "csv"];
        output(&[&receive[..], &["--output", &folder], flags].concat());
        let files = fs::read_dir(&folder).unwrap().map(|it| it.unwrap().path());
        let mut files: Vec<_> = files
            .map(|path| {
                let text = fs::read_to_string(&path).unwrap();
                let rows = text
                    .lines()
                    .map(|row| row.split_once(',').unwrap().1.into());
                let name = path.file_name().unwrap().to_str().unwrap();
                (name.to_owned(), rows.collect())
            })
            .collect();
        files.sort();
        fs::remove_dir_all(folder).unwrap();
        files
    }
}

/// One "-" among numbers.
fn odd() -> Lines {
    Lines::new(
        r#"{"type":"req","status":501}
{"type":"req","status":502}
{"type":"req","status":503}
{"type":"req","status":"-"}
{"type":"req","status":504}
{"type":"req","status":505}
{"type":"req","status":506}
"#,
    )
}

/// 70 sets of keys of one type.
fn shapes() -> Lines {
    let mut lines = String::new();
    for at in 0..70 {
        let level = if at >= 64 { "error" } else { "info" };
        let line = json!({"type": "ev", "level": level, format!("k{at}"): at});
        writeln!(lines, "{line}").unwrap();
    }
    Lines::new(&lines)
}

/// Lines that no type can hold.
fn unusual() -> Lines {
    let many: Vec<_> = (0..1_100).map(|at| format!(r#""k{at}":{at}"#)).collect();
    Lines::new(&format!(
        r#"{{"type":"ev","n":1,"n":2}}
{{"type":"ev","n":3,"":4}}
{{"type":"ev","n":5,{}}}
{{"type":"ev","n":6,"text":1,"text":[1,"a"]}}
"#,
        many.join(",")
    ))
}

#[test]
fn an_odd_value_hides_no_later_value() {
    let lines = odd();
    let summary = lines.path("summary.json");
    let metrics = lines.path("metrics");
    let files = ["--summary", &summary, "--metrics-file", &metrics];
    let flags = [&["--where", "status >= 500"][..], &files].concat();
    let found = lines.receive(&flags, 65);
    let found: Vec<_> = found.iter().map(|it| it["status"].clone()).collect();
    assert_eq!(found, [501, 502, 503, 504, 505, 506]);
    let summary = read_json(summary.as_ref());
    assert_eq!(
        (&summary["undecided"], &summary["records_filtered"]),
        (&json!(1), &json!(1))
    );
    let value = json!({
        "field": "status",
        "type": "string",
        "example": "\"-\"",
        "reason": "`>=` does not take (string, int)",
        "records": 1,
    });
    assert_eq!(summary["undecided_values"], json!([value]));
    let metrics = fs::read_to_string(metrics).unwrap();
    let metric = r#"baler_records_undecided_total{field="status",type="string"} 1"#;
    assert!(metrics.contains(metric), "{metrics}");
    let guarded = "type(status) == int && status >= 500";
    assert_eq!(lines.receive(&["--where", guarded], 0).len(), 6);
    assert_eq!(lines.receive(&["--where", "status == '-'"], 0).len(), 1);
    let statuses = [501, 502, 503]
        .map(Value::from)
        .into_iter()
        .chain(["-".into()]);
    let statuses = statuses.chain([504, 505, 506].map(Value::from));
    let statuses: Vec<_> = statuses.map(|status| json!({"status": status})).collect();
    assert_eq!(lines.receive(&["--fields", "status"], 0), statuses);
    let rows = [
        "type,status",
        "req,501",
        "req,502",
        "req,503",
        "req,-",
        "req,504",
        "req,505",
    ];
    let rows = [&rows[..], &["req,506"]].concat();
    assert_eq!(
        lines.csv(&[]),
        [(
            "req.csv".to_owned(),
            rows.iter().map(|it| (*it).into()).collect()
        )]
    );
}

#[test]
fn further_sets_of_keys_hide_no_field() {
    let lines = shapes();
    let errors = lines.receive(&["--where", "level == 'error'"], 0);
    let last: Vec<_> = (64..70)
        .map(|at| json!({"type": "ev", "level": "error", format!("k{at}"): at}))
        .collect();
    assert_eq!(errors, last);
    let levels = lines.receive(&["--fields", "level"], 0);
    let expected = |at| json!({"level": if at >= 64 { "error" } else { "info" }});
    assert_eq!(levels, (0..70).map(expected).collect::<Vec<_>>());
    let [(name, rows)] = &lines.csv(&["--fields", "level"])[..] else {
        panic!("several files");
    };
    assert_eq!((&**name, rows.len()), ("ev.csv", 71));
    let files = lines.csv(&[]);
    let headers: BTreeSet<_> = files.iter().map(|(_, rows)| rows[0].clone()).collect();
    assert_eq!(
        headers,
        (0..70).map(|at| format!("type,level,k{at}")).collect()
    );
    assert!(files.iter().all(|(_, rows)| rows.len() == 2));
    let to = file_uri(lines.path("to").as_ref());
    let replay = ["replay", &lines.chunks, "--to", &to, "--fields", "level"];
    output(&[&replay[..], &["--where", "has(k68) || has(k1)"]].concat());
    let replayed = json_lines(&output(&["receive", "--from", &to, "--format", "json"]));
    let replayed: Vec<_> = replayed
        .iter()
        .map(|it| it["fields"]["level"].clone())
        .collect();
    assert_eq!(replayed, ["info", "error"]);
}

#[test]
fn keys_that_no_type_can_have_hide_no_field() {
    let lines = unusual();
    for (condition, found) in [
        ("n == 2", vec![2]),
        ("n == 3 && fields[''] == 4", vec![3]),
        ("has(k1099) && k1099 == 1099", vec![5]),
        ("has(text) && text[1] == 'a'", vec![6]),
        ("n > 2", vec![3, 5, 6]),
    ] {
        let condition = condition.replace("fields['']", "fields[?''].orValue(0)");
        let records = lines.receive(&["--where", &condition, "--fields", "n"], 0);
        let numbers: Vec<_> = records.iter().map(|it| it["n"].as_u64().unwrap()).collect();
        assert_eq!(numbers, found, "{condition}");
    }
    let [(name, rows)] = &lines.csv(&["--fields", "n"])[..] else {
        panic!("several files");
    };
    assert_eq!(name, "ev.csv");
    assert_eq!(rows, &["n", "2", "3", "5", "6"]);
    let mut rows: Vec<_> = lines
        .csv(&[])
        .into_iter()
        .flat_map(|(_, rows)| rows)
        .collect();
    rows.retain(|row| row.len() < 100);
    rows.sort();
    assert_eq!(
        rows,
        [
            r#"ev,2,"{""n"":1}""#,
            r#"ev,3,"{"""":4}""#,
            r#"ev,6,"[1,""a""]","{""text"":1}""#,
            "type,n,json",
            "type,n,text,json",
        ]
    );
    // Without a filter, lines come back as they were.
    let all = output(&["receive", "--from", &lines.chunks, "--format", "json"]);
    assert!(
        all.contains(r#""fields":{"type":"ev","n":1,"n":2}}"#),
        "{all}"
    );
}

#[test]
fn a_field_that_no_record_of_the_first_chunk_has_ends_the_command_before_anything_is_acknowledged()
{
    for lines in [odd(), shapes()] {
        let chunks = format!("{}?consumer=c", lines.chunks);
        let to = file_uri(lines.path("to").as_ref());
        for (flag, name) in [
            ("--where", "stats == 1 && leve == 2"),
            ("--fields", "stats,leve"),
        ] {
            for args in [
                &["receive", "--from", &chunks, "--format", "json"][..],
                &["receive", "--from", &chunks, "--workers", "2"],
                &["send", "--from", &chunks, "--to", &to],
                &["replay", &chunks, "--to", &to],
            ] {
                let run = baler(&[args, &[flag, name]].concat()).code(65);
                let errors = String::from_utf8(run.get_output().stderr.clone()).unwrap();
                let near = errors.contains("did you mean status?")
                    || errors.contains("did you mean level?");
                assert!(
                    near && errors.contains(&format!("{flag}: no record type has ")),
                    "{errors}"
                );
            }
        }
        let all = output(&[
            "receive",
            "--from",
            &chunks,
            "--format",
            "json",
            "--where",
            "has(leve) || type != ''",
        ]);
        assert!(matches!(all.lines().count(), 7 | 70), "{all}");
    }
}
