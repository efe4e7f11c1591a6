//! The program `pipeline`.

use std::collections::BTreeSet;
use std::process::{Command, Output};

use serde_json::Value;

fn pipeline(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_pipeline"))
        .args(arguments)
        .output()
        .unwrap()
}

fn rows(output: &Output) -> Vec<Value> {
    let told = String::from_utf8_lossy(&output.stderr);
    match serde_json::from_slice(&output.stdout) {
        Ok(Value::Array(rows)) => rows,
        other => panic!("no list of rows: {other:?}; {told}"),
    }
}

#[test]
fn every_row_is_verified_and_has_its_figures() {
    let output = pipeline(&["--quick", "--format", "json", "--chunk-records", "32,1024"]);
    let rows = rows(&output);
    let mut names = BTreeSet::new();
    for row in &rows {
        assert_eq!(row["verified"], true, "{row:#}");
        assert_eq!(row["records"], 3_000, "{row:#}");
        let rate = &row["records_per_second"];
        let [min, median, max] = ["min", "median", "max"].map(|name| rate[name].as_f64().unwrap());
        assert!(0.0 < min && min <= median && median <= max, "{row:#}");
        assert!(
            row["cpu_seconds_per_million"].as_f64().unwrap() > 0.0,
            "{row:#}"
        );
        let bytes = row["bytes_per_record"].as_f64().unwrap();
        assert!((4.0..200.0).contains(&bytes), "{row:#}");
        for text in ["container", "compression"] {
            assert!(row[text].is_string(), "{row:#}");
        }
        for number in ["chunk_records", "threads"] {
            assert!(row[number].as_u64().unwrap() > 0, "{row:#}");
        }
        names.insert(row["name"].as_str().unwrap());
    }
    let all = [
        "decode",
        "emit",
        "encode",
        "file",
        "file-read",
        "null",
        "tcp",
    ];
    assert!(names.into_iter().eq(all));
    assert!(output.status.success());
}

#[test]
fn a_row_that_fails_is_told_and_the_exit_code_says_so() {
    let output = pipeline(&[
        "--quick",
        "--format=json",
        "--only=file-read",
        "--only=encode",
        "--folder=/nowhere/at/all",
    ]);
    assert_eq!(output.status.code(), Some(1));
    for row in rows(&output) {
        let is_file = row["name"] == "file-read";
        assert_eq!(row["verified"], !is_file, "{row:#}");
        let told = row["failure"].as_str().unwrap_or("");
        assert_eq!(told.contains("cannot make a folder"), is_file, "{row:#}");
    }
}

#[test]
fn the_table_fits_and_results_are_kept_with_their_origin() {
    let folder = tempfile::tempdir().unwrap();
    let results = folder.path().join("results");
    let output = Command::new(env!("CARGO_BIN_EXE_pipeline"))
        .args(["--quick", "--only", "decode", "--results"])
        .arg(&results)
        .output()
        .unwrap();
    assert!(output.status.success());
    let table = String::from_utf8(output.stdout).unwrap();
    // A heading, and five encodings at three sizes of chunks.
    assert_eq!(table.lines().count(), 16, "{table}");
    assert!(table.lines().all(|line| line.len() <= 100), "{table}");
    let kept = std::fs::read(results.join("pipeline.json")).unwrap();
    let kept: Value = serde_json::from_slice(&kept).unwrap();
    assert_eq!(kept["rows"].as_array().unwrap().len(), 15);
    assert!(
        kept["command"]
            .as_str()
            .unwrap()
            .starts_with("pipeline --quick")
    );
    assert!(kept["machine"]["cores"].as_u64().unwrap() > 0);
}
