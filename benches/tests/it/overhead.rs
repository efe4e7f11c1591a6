//! The program `overhead`.

use std::collections::BTreeSet;
use std::process::{Command, Output};

use serde_json::Value;

fn overhead(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_overhead"))
        .args(arguments)
        .output()
        .unwrap()
}

fn rows(output: &Output) -> Vec<Value> {
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    serde_json::from_slice(&output.stdout).expect(&told)
}

#[test]
fn every_variant_has_its_figures_on_one_thread_and_on_two() {
    let output = overhead(&["--quick", "--format", "json", "--threads", "1,2"]);
    let rows = rows(&output);
    let mut names = BTreeSet::new();
    for row in &rows {
        assert_eq!(row["failure"], Value::Null, "{row:#}");
        for figure in ["median_ns_per_call", "mean_ns_per_call", "times_clock"] {
            assert!(row[figure].as_f64().unwrap() > 0.0, "{row:#}");
        }
        let threads = row["threads"].as_u64().unwrap();
        let lost = row["lost"].as_u64().unwrap();
        assert_eq!(row["records"], threads * 4_000, "{row:#}");
        assert!(lost <= threads * 4_000, "{row:#}");
        assert_eq!(row["instructions_per_call"], Value::Null);
        let name = row["variant"].as_str().unwrap();
        // A blocking variant loses nothing, and without a probe there is nothing to lose.
        if [
            "none",
            "clock",
            "deactivated",
            "deactivated-pattern",
            "operation",
            "queue-blocking",
            "queue-lock-free",
            "operation-tcp",
            "operation-tcp-analysed",
            "duration",
            "aggregated",
            "aggregated-histogram",
            "events",
            "emit-flat",
        ]
        .contains(&name)
        {
            assert_eq!(lost, 0, "{row:#}");
        }
        names.insert(name);
    }
    for name in [
        "none",
        "deactivated",
        "clock",
        "operation",
        "queue-blocking",
        "queue-lock-free",
        "operation-tcp",
        "operation-tcp-analysed",
        "duration",
        "aggregated",
        "aggregated-histogram",
        "events",
        "emit-flat",
        "fastrace",
        "tracing-registry",
        "opentelemetry",
    ] {
        assert!(names.contains(name), "{name} of {names:?}");
    }
    assert_eq!(rows.len(), names.len() * 2);
    assert!(output.status.success());
}

#[test]
fn the_table_fits_and_table_and_chart_are_kept_with_their_origin() {
    let folder = tempfile::tempdir().unwrap();
    let results = folder.path().join("results");
    let output = Command::new(env!("CARGO_BIN_EXE_overhead"))
        .args(["--quick", "--depth", "2,128", "--only", "none,operation"])
        .arg("--results")
        .arg(&results)
        .output()
        .unwrap();
    assert!(output.status.success());
    let table = String::from_utf8(output.stdout).unwrap();
    assert!(
        table.lines().all(|line| line.chars().count() <= 100),
        "{table}"
    );
    let depths = table.lines().filter(|line| line.starts_with("operation "));
    assert_eq!(depths.count(), 2, "{table}");
    let read = |name: &str| std::fs::read_to_string(results.join(name)).unwrap();
    let kept: Value = serde_json::from_str(&read("overhead.json")).unwrap();
    assert!(kept["command"].as_str().unwrap().contains("--depth 2,128"));
    assert!(kept["rows"][0]["mean_ns_per_call"].as_f64().unwrap() > 0.0);
    assert_eq!(read("overhead.txt"), table);
    let chart = read("overhead.svg");
    assert!(chart.starts_with("<svg") && chart.contains("depth 128"));
}

#[test]
fn a_variant_that_there_is_not_is_told() {
    let output = overhead(&["--quick", "--only", "nonsense"]);
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && told.contains("nonsense") && told.contains("operation"),
        "{told}"
    );
}
