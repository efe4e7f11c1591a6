//! `baler verify`: seeded runs on tcp and file, and the proof that the oracle can fail.

use serde_json::Value;

use crate::support::{baler, file_uri, json};

/// Runs `verify`. The promise must hold, with the duplicates and faults that are allowed.
pub(crate) fn holds(to: &str, seed: u64, faults: &str, flags: &[&str]) -> Value {
    let seed = seed.to_string();
    let mut args = vec!["verify", "--to", to, "--seed", &seed, "--format", "json"];
    args.extend(["--records", "20000", "--faults", faults]);
    args.extend(flags);
    let seen = json(&args);
    for none in [
        "missing",
        "spurious",
        "altered",
        "duplicates_within_reader",
        "quarantine_errors",
    ] {
        assert_eq!(seen[none], 0, "{none}: {seen}");
    }
    // No order is promised to consumers that share a queue, or if chunks go to partitions in turn.
    if seen["order_promised"] == true {
        assert_eq!(seen["out_of_order"], 0, "{seen}");
    }
    let is_ordered = !to.starts_with("amqp") && !to.contains("round_robin");
    assert_eq!(seen["order_promised"], is_ordered, "{seen}");
    assert_eq!(seen["held"], true, "{seen}");
    assert_eq!(seen["fresh_record_passed"], true, "{seen}");
    for fault in faults.split(',') {
        assert!(
            seen["faults"][fault].as_u64() > Some(0),
            "{fault} was not injected: {seen}"
        );
    }
    let number = |name: &str| seen[name].as_u64().unwrap();
    let dropped = seen["dropped"].as_object().unwrap().values();
    let dropped: u64 = dropped.map(|it| it.as_u64().unwrap()).sum();
    assert_eq!(
        number("offered"),
        number("acknowledged") + dropped + number("in_doubt"),
        "{seen}"
    );
    assert!(number("delivered") >= number("acknowledged"), "{seen}");
    seen
}

#[test]
fn tcp_keeps_its_promise_over_a_bad_network() {
    let seen = holds("tcp:", 1, "reset,stall,half-open,slow-link", &[]);
    assert!(seen["transport"]["resent"].as_u64() > Some(0), "{seen}");
}

#[test]
fn tcp_keeps_its_promise_with_chunks_that_the_collector_sizes() {
    holds(
        "tcp:",
        4,
        "reset,producer-kill,producer-term",
        &["--chunk-records", "auto"],
    );
}

#[test]
fn tcp_keeps_its_promise_while_producers_are_killed() {
    holds(
        "tcp:",
        2,
        "producer-kill,producer-term",
        &["--rounds", "2", "--compression", "zstd"],
    );
}

#[test]
fn tcp_keeps_its_promise_while_consumers_are_killed() {
    let flags = ["--rounds", "3", "--producers", "3"];
    let seen = holds("tcp:", 3, "consumer-kill,consumer-term", &flags);
    let seen_twice = seen["duplicates_across_readers"].as_u64();
    assert!(seen_twice > Some(0), "no duplicate was seen: {seen}");
}

#[test]
fn tcp_keeps_its_promise_with_poison_and_slow_consumers() {
    let faults = "poison,consumer-slow,overflow,reset";
    let seen = holds("tcp:", 4, faults, &["--rounds", "2"]);
    assert!(seen["poisoned"].as_u64() > Some(0), "{seen}");
    assert_eq!(seen["poisoned"], seen["quarantined"], "{seen}");
}

#[test]
fn tcp_keeps_its_promise_with_a_spool_on_a_bad_disk() {
    let faults = "half-open,stall,disk-full,torn-write,consumer-kill,producer-kill";
    let seen = holds("tcp:", 5, faults, &["--spool", "--rounds", "2"]);
    assert!(seen["spooled"].as_u64() > Some(0), "{seen}");
}

#[test]
fn tcp_keeps_its_promise_while_the_relay_between_is_killed() {
    let faults = "broker-down-at-start,broker-kill,broker-restart";
    let seen = holds("tcp:", 11, faults, &["--rounds", "2"]);
    assert_eq!(seen["faults"]["broker-kill"], 2);
}

#[test]
fn an_address_and_a_folder_of_ones_own_are_verified() {
    let folder = tempfile::tempdir().unwrap();
    let address = format!(
        "tcp://127.0.0.1:{}",
        baler_connector_testkit::faults::free_port().unwrap()
    );
    for uri in [address, file_uri(folder.path())] {
        let seen = holds(&uri, 12, "producer-kill,consumer-term", &[]);
        assert_eq!(
            (&seen["producers"], &seen["consumers"]),
            (&2.into(), &1.into())
        );
    }
}

#[test]
fn a_folder_keeps_its_promise_while_consumers_are_killed() {
    holds("file:", 6, "consumer-kill,consumer-term,consumer-slow", &[]);
}

#[test]
fn a_folder_keeps_its_promise_on_a_bad_disk() {
    let faults = "disk-full,torn-write,producer-kill";
    holds("file:", 7, faults, &["--rounds", "3"]);
}

#[test]
fn a_folder_keeps_its_promise_with_poison_and_overflow() {
    let seen = holds("file:", 8, "poison,overflow,producer-term", &[]);
    assert_eq!(seen["poisoned"], seen["quarantined"], "{seen}");
}

#[test]
fn all_faults_of_a_folder_go_together() {
    for seed in [9, 10] {
        let mut flags = vec!["--compression", "lz4"];
        if seed == 10 {
            flags.push("--spool");
        }
        let seen = holds("file:", seed, "producer-kill,poison,consumer-kill", &flags);
        assert_eq!(seen["seed"], seed);
    }
}

#[test]
fn the_oracle_sees_every_lie() {
    for (lie, seen_as) in [
        ("lose", "missing"),
        ("alter", "altered"),
        ("duplicate", "duplicates_within_reader"),
        ("invent", "spurious"),
        ("reorder", "out_of_order"),
    ] {
        // One thread: chunks of different threads may change places.
        let args = [
            "verify",
            "--to",
            "file:",
            "--records",
            "2000",
            "--threads",
            "1",
        ];
        let more = ["--sabotage", lie, "--patience", "2s", "--format", "json"];
        let ended = baler(&[args.as_slice(), &more].concat()).code(76);
        let seen: Value = serde_json::from_slice(&ended.get_output().stdout).unwrap();
        assert!(seen[seen_as].as_u64() > Some(0), "{lie}: {seen}");
        assert_eq!(seen["held"], false, "{lie}: {seen}");
        assert_ne!(seen["violations"], serde_json::json!([]), "{lie}: {seen}");
    }
}

#[test]
fn a_fault_that_the_endpoint_cannot_have_is_refused() {
    let args = ["verify", "--to", "file:", "--faults", "leader-move"];
    let ended = baler(&args).code(78);
    let told = String::from_utf8_lossy(&ended.get_output().stderr).into_owned();
    for word in ["leader-move", "file:", "torn-write"] {
        assert!(told.contains(word), "{told}");
    }
}
