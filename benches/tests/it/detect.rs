//! The program `detect`.

use std::process::{Command, Output};

use serde_json::Value;

fn detect(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_detect"))
        .args(["--quick", "--functions", "5"])
        .args(arguments)
        .output()
        .unwrap()
}

#[test]
fn every_kind_has_its_figures_in_both_designs() {
    let folder = tempfile::tempdir().unwrap();
    let results = format!("--results={}", folder.path().display());
    let output = detect(&["--format", "json", "--slowdowns", "100", &results]);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{told}");
    let rows: Vec<Value> = serde_json::from_slice(&output.stdout).expect(&told);
    let kinds = ["none", "full", "duration", "aggregated", "part-time"];
    for kind in kinds {
        for design in ["duet", "separate"] {
            let mut of_case = rows
                .iter()
                .filter(|row| row["kind"] == kind && row["design"] == design);
            let (same, slower) = (of_case.next().unwrap(), of_case.next().unwrap());
            assert_eq!(same["slowdown_percent"], 0);
            assert_eq!(same["calls"], Value::Null);
            assert_eq!(slower["slowdown_percent"], 100);
            assert_eq!(slower["failure"], Value::Null, "{slower:#}");
            assert!(slower["base_ns"].as_f64().unwrap() > 1_000.0, "{slower:#}");
            assert!(slower["noise_percent"].as_f64().is_some(), "{slower:#}");
            // Whether it is found depends on the load of the machine.
            let most = slower["most_calls"].as_f64().unwrap();
            let calls = slower["calls"].as_f64();
            assert!(calls.is_none_or(|calls| calls <= most), "{slower:#}");
            if kind != "aggregated" {
                assert!(slower["false_alarms"].as_f64().is_some(), "{slower:#}");
            }
        }
    }
    assert_eq!(rows.len(), kinds.len() * 4);
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    let kept: Value = serde_json::from_str(&read("detect.json")).unwrap();
    assert_eq!(kept["rows"].as_array(), Some(&rows));
    assert!(
        kept["command"]
            .as_str()
            .unwrap()
            .contains("--slowdowns 100")
    );
    let table = read("detect.txt");
    assert!(
        table.lines().all(|line| line.chars().count() <= 100),
        "{table}"
    );
    assert!(read("detect.svg").contains("full 5 µs duet"));
}

#[test]
fn a_kind_that_there_is_not_is_told() {
    let output = detect(&["--only", "nonsense"]);
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && told.contains("nonsense") && told.contains("part-time"),
        "{told}"
    );
}
