//! A short day: the figures mean nothing, the accounts must add up.

use std::process::Command;

use serde_json::Value;

#[test]
fn a_day_is_compared_in_pairs_and_nothing_is_lost() {
    let run = Command::new(env!("CARGO_BIN_EXE_autotune"))
        .args([
            "--rates",
            "500,5000",
            "--seconds",
            "0.3",
            "--warm-up",
            "0.1",
        ])
        .args(["--chunk-sizes", "16", "--rounds", "1", "--format", "json"])
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{told}");
    let rows: Vec<Value> = serde_json::from_slice(&run.stdout).unwrap();
    let cells: Vec<_> = rows
        .iter()
        .map(|row| {
            (
                row["rate"].as_u64().unwrap(),
                row["setting"].as_str().unwrap(),
            )
        })
        .collect();
    let expected = [(500, "auto"), (500, "16"), (5_000, "auto"), (5_000, "16")];
    assert_eq!(cells, expected);
    for row in &rows {
        assert_eq!(row["lost"], 0, "{row}");
        assert!(row["records_per_chunk"].as_f64().unwrap() >= 1.0, "{row}");
        let least = |of: &str| row[of][1].as_f64().unwrap();
        let (whole, own) = (least("cpu_ns_per_record"), least("own_ns_per_record"));
        let behind = row["behind_ns_per_record"].as_f64().unwrap();
        assert!(behind < own && own < whole, "{row}");
    }
}
