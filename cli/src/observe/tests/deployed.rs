//! The dashboard and the alert rules name nothing that is not exported.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::observe::metric;

fn deployed(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../deploy")
        .join(path)
}

/// Returns the names of metrics in an expression.
fn names(expression: &str) -> BTreeSet<&str> {
    let words =
        expression.split(|character: char| !character.is_ascii_alphanumeric() && character != '_');
    words
        .filter(|word| word.starts_with("baler_") || word.starts_with("process_"))
        .collect()
}

fn assert_exported(expression: &str) {
    let names = names(expression);
    assert!(!names.is_empty(), "no metric in {expression}");
    for name in names {
        let exported = metric::ALL.iter().any(|metric| metric.name == name);
        assert!(exported, "{name} of {expression} is not exported");
    }
}

/// Asserts that lag is summed over lanes, with the largest figure of each lane: all consumers of
/// one queue report its lag.
fn assert_lag_counts_once(expression: &str) {
    let counted = "max by (job, lane) (baler_lane_lag_chunks";
    let rest = expression.replace(counted, "");
    assert!(!rest.contains("lag_chunks"), "{expression}");
}

/// Collects every object of a document, at any depth.
fn objects<'a>(value: &'a Value, found: &mut Vec<&'a serde_json::Map<String, Value>>) {
    match value {
        Value::Object(object) => {
            found.push(object);
            object.values().for_each(|value| objects(value, found));
        }
        Value::Array(items) => items.iter().for_each(|value| objects(value, found)),
        _ => {}
    }
}

#[test]
fn dashboard_can_be_imported_and_shows_metrics_that_are_exported() {
    let text = fs::read_to_string(deployed("grafana/baler.json")).unwrap();
    let dashboard: Value = serde_json::from_str(&text).unwrap();
    assert!(dashboard.get("id").is_none(), "an id is another Grafana's");
    let variables = dashboard["templating"]["list"].as_array().unwrap();
    assert_eq!(variables[0]["type"], "datasource");
    for variable in &variables[1..] {
        assert_exported(variable["definition"].as_str().unwrap());
    }
    let mut ids = BTreeSet::new();
    let mut shown = BTreeSet::new();
    for panel in dashboard["panels"].as_array().unwrap() {
        assert!(ids.insert(panel["id"].as_u64().unwrap()), "{panel}");
        if panel["type"] == "row" {
            continue;
        }
        for target in panel["targets"].as_array().unwrap() {
            let expression = target["expr"].as_str().unwrap();
            assert_exported(expression);
            assert_lag_counts_once(expression);
            shown.extend(names(expression).into_iter().map(str::to_owned));
        }
    }
    // The figures that users look for first must be on it.
    for name in [
        "baler_records_delivered_total",
        "baler_chunks_closed_total",
        "baler_row_bytes_total",
        "baler_chunks_in_flight",
        "baler_oldest_unconfirmed_seconds",
        "baler_chunk_retries_total",
        "baler_writer_reconnects_total",
        "baler_records_dropped_total",
        "baler_spool_waiting_bytes",
        "baler_lane_lag_chunks",
        "baler_chunks_duplicate_total",
        "baler_chunks_missing",
        "baler_chunks_quarantined_total",
        "process_cpu_seconds_total",
        "process_resident_memory_bytes",
    ] {
        assert!(shown.contains(name), "{name} is on no panel");
    }
    let mut found = Vec::new();
    objects(&dashboard, &mut found);
    for object in found {
        if let Some(source) = object.get("datasource") {
            assert_eq!(source["uid"], "${datasource}", "a data source of its own");
        }
    }
}

#[test]
fn alert_rules_are_sound_and_watch_metrics_that_are_exported() {
    let path = deployed("prometheus/baler.rules.yml");
    let text = fs::read_to_string(&path).unwrap();
    let expressions = text
        .lines()
        .filter_map(|line| line.trim().strip_prefix("expr: "));
    let expressions: Vec<_> = expressions.collect();
    assert_eq!(expressions.len(), text.matches("- alert: ").count());
    for expression in expressions {
        assert_exported(expression);
        assert_lag_counts_once(expression);
    }
    let output = Command::new("promtool")
        .args(["check", "rules"])
        .arg(&path)
        .output()
        .expect("promtool, which `scripts/test` installs");
    let told = String::from_utf8_lossy(&output.stderr).into_owned()
        + &String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{told}");
}
