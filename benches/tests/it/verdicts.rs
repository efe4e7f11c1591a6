//! The program `verdicts`.

use std::process::Command;

use serde_json::Value;

#[test]
fn every_case_has_its_figures() {
    let output = Command::new(env!("CARGO_BIN_EXE_verdicts"))
        .args(["--patterns=1,5", "--probes=3,30", "--repetitions=2"])
        .args(["--format", "json"])
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    let rows: Vec<Value> = serde_json::from_slice(&output.stdout).expect(&told);
    assert_eq!(rows.len(), 4);
    for row in rows {
        assert_eq!(row["failure"], Value::Null, "{row:#}");
        assert_eq!(row["repetitions"], 2);
        for figure in ["verdict_us", "answer_us", "update_us", "replace_us"] {
            assert!(row[figure]["mean"].as_f64().unwrap() > 0.0, "{row:#}");
        }
    }
    assert!(output.status.success(), "{told}");
}
