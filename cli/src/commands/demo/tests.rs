//! A test of the text.

use serde_json::json;

#[test]
fn the_figures_are_the_ones_that_were_read() {
    let operation = |name: &str, count: u64, failed: u64, ns: f64| {
        json!({
            "operation": format!("fn baler::commands::demo::shop::{name}"), "count": count,
            "failed": failed, "mean_ns": ns, "min_ns": ns / 2.0, "p50_ns": ns * 0.9,
            "p99_ns": ns * 4.0, "max_ns": ns * 40.0,
        })
    };
    let call = |name: &str, depth: u64, ns: f64| {
        json!({
            "operation": format!("fn baler::commands::demo::shop::{name}"), "ess": depth,
            "total_ns": ns, "self_ns": ns / 3.0,
        })
    };
    let document = json!({
        "to": "tcp://127.0.0.1:34567", "emitted": 1_234_567, "delivered": 1_234_567, "spooled": 0,
        "dropped": {}, "chunks": 1_206, "chunks_spooled": 0, "chunks_given_up": 0,
        "chunks_made": 1_206, "bytes": 12_345_678, "records_per_chunk": 1_023.7,
        "bytes_per_chunk": 10_236.9, "bytes_per_record": 10.0,
        "closed_by": { "records": 1_200, "age": 5, "flush": 1 }, "retries": 0, "reconnects": 0,
        "seconds": 5.004, "records_per_second": 246_716.0,
        "visits": { "sold": 12_345, "left_without": 45_678, "failed": 987 },
        "received": 1_234_567, "adds_up": true, "kieker_bytes": 61_728_390,
        "operations": [
            operation("frontend::visit", 59_010, 987, 305_000.0),
            operation("recommender::rank", 118_020, 0, 9_900.0),
            operation("inventory::reserve", 20_111, 640, 1_870.0),
        ],
        "call_tree": { "trace_id": 8_070_450_532_247_928_832_u64, "executions": [
            call("frontend::visit", 0, 402_000.0),
            call("frontend::home", 1, 31_200.0),
            call("catalog::find", 2, 5_100.0),
            call("recommender::suggest", 1, 20_300.0),
        ] },
    });
    let text = super::text(document);
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/demo.txt");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(path, &text).unwrap();
    }
    assert_eq!(text, std::fs::read_to_string(path).unwrap());
}
