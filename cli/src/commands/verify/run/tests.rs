//! A test of the text.

use serde_json::json;

#[test]
fn the_findings_are_the_ones_that_were_read() {
    let document = json!({
        "endpoint": "amqp+private:", "seed": 7, "held": false, "records": 20_000, "producers": 2,
        "threads": 2, "consumers": 2, "offered": 20_000, "acknowledged": 19_987,
        "delivered": 19_990, "missing": 2, "spurious": 0, "altered": 0,
        "duplicates_within_reader": 0, "duplicates_across_readers": 48, "out_of_order": 3,
        "order_promised": true, "dropped": { "shutdown": 8 }, "spooled": 0, "in_doubt": 5,
        "conserved": true, "poisoned": 3, "quarantined": 3, "quarantine_errors": 0,
        "transport": { "duplicates": 1, "redelivered": 2, "resent": 1 },
        "faults": { "broker-restart": 1, "poison": 1 },
        "schedule": [
            { "fault": "broker-restart", "detail": "stopped and started again",
              "at_seconds": 0.336, "seconds": 5.28 },
            { "fault": "poison", "detail": "3 chunks", "at_seconds": 7.1, "seconds": 0.002 },
        ],
        "fresh_record_passed": true,
        "violations": ["record 17 of thread 1 of producer 0 was acknowledged and never delivered"],
        "seconds": 12.3, "records_per_second": 1_625.2,
    });
    let text = super::text(&document, "the promise was broken");
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/verify.txt");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(path, &text).unwrap();
    }
    assert_eq!(text, std::fs::read_to_string(path).unwrap());
}
