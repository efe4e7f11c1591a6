//! The program `brokers`.

use std::process::Command;

use serde_json::Value;

/// The rows of a run with few records; RabbitMQ need not be installed for the mock cluster.
#[test]
fn every_way_to_write_to_the_mock_cluster_is_verified_and_compared() {
    let output = Command::new(env!("CARGO_BIN_EXE_brokers"))
        .args(["--quick", "--only", "kafka-mock", "--format", "json"])
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    let rows: Vec<Value> = serde_json::from_slice(&output.stdout).expect(&told);
    let ways: Vec<_> = rows
        .iter()
        .map(|row| row["way"].as_str().unwrap())
        .collect();
    let baler = ["baler"; 3];
    assert_eq!(ways[..3], ["plain-awaiting", "plain-threaded", "plain"]);
    assert_eq!(ways[3..], baler);
    for row in &rows {
        assert_eq!(row["verified"], true, "{row:#}");
        assert_eq!(row["broker"], "kafka-mock");
        for figure in [
            "records_per_second",
            "cpu_seconds_per_million",
            "records_per_cpu_second_ratio",
        ] {
            assert!(row[figure]["median"].as_f64().unwrap() > 0.0, "{row:#}");
        }
        let bytes = row["payload_bytes_per_record"].as_f64().unwrap();
        assert!((4.0..400.0).contains(&bytes), "{row:#}");
    }
    assert!(output.status.success(), "{told}");
}

#[test]
fn a_broker_that_is_not_there_is_told() {
    let output = Command::new(env!("CARGO_BIN_EXE_brokers"))
        .args(["--quick", "--only", "kafka"])
        .env("KAFKA_BOOTSTRAP", "")
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && told.contains("KAFKA_BOOTSTRAP"),
        "{told}"
    );
}
