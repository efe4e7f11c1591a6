//! The program `codec`.

use std::collections::BTreeSet;
use std::process::{Command, Output};

use serde_json::Value;

fn codec(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_codec"))
        .arg("--quick")
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
fn every_format_is_verified_and_has_its_figures() {
    let output = codec(&["--format", "json", "--chunk-records", "1,32,1024"]);
    let rows = rows(&output);
    let mut codecs = BTreeSet::new();
    for row in &rows {
        assert_eq!(row["verified"], true, "{row:#}");
        for number in ["bytes_per_record", "encode_ns", "decode_ns"] {
            assert!(row[number].as_f64().unwrap() > 0.0, "{row:#}");
        }
        codecs.insert(row["codec"].as_str().unwrap());
    }
    let all = ["avro", "columnar", "kieker", "otlp", "postcard"];
    assert!(codecs.into_iter().eq(all));
    assert_eq!(rows.len(), 3 * 4 * 5);
    assert!(output.status.success());
}

#[test]
fn results_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let results = format!("--results={}", folder.path().display());
    let output = codec(&[&results, "--chunk-records=128", "--compression=none"]);
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.starts_with("2100 records") && text.contains("columnar"),
        "{text}"
    );
    assert!(text.lines().skip(1).all(|line| line.len() <= 100), "{text}");
    let kept = |name| std::fs::read_to_string(folder.path().join(name)).unwrap();
    let kept_rows: Value = serde_json::from_str(&kept("codec.json")).unwrap();
    assert!(
        kept_rows["rows"]
            .as_array()
            .is_some_and(|rows| rows.len() == 5)
    );
    assert!(kept("codec.txt").starts_with("2100 records"));
}
