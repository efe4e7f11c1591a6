//! `baler verify` on brokers: seeded runs, spread over their faults.

use crate::killed::leaves_nothing;
use crate::verify::holds;

#[test]
fn kafka_keeps_its_promise_while_brokers_come_and_go() {
    let seen = holds(
        "kafka+mock:",
        101,
        "broker-down-at-start,broker-kill,broker-restart",
        &[],
    );
    assert_eq!(seen["faults"]["broker-kill"], 1);
}

#[test]
fn kafka_keeps_its_promise_while_leaders_and_coordinators_move() {
    holds(
        "kafka+mock:",
        102,
        "leader-move,coordinator-move,request-errors",
        &[],
    );
}

#[test]
fn kafka_keeps_its_promise_while_consumers_come_and_go() {
    let seen = holds(
        "kafka+mock:",
        103,
        "rebalance,consumer-kill,consumer-term",
        &[],
    );
    assert_eq!(seen["duplicates_within_reader"], 0);
}

#[test]
fn kafka_promises_no_order_where_chunks_go_to_the_partitions_in_turn() {
    let to = "kafka+mock:verify?partition_by=round_robin";
    let seen = holds(to, 106, "rebalance,producer-term", &[]);
    assert!(seen["out_of_order"].as_u64() > Some(0), "{seen}");
}

#[test]
fn kafka_keeps_its_promise_while_producers_come_and_go() {
    holds(
        "kafka+mock:",
        104,
        "producer-kill,producer-term,throttle,poison",
        &[],
    );
}

#[test]
fn kafka_keeps_its_promise_over_a_bad_network() {
    let faults = "stall,half-open,reset,slow-link,consumer-slow,overflow";
    let seen = holds("kafka+mock:", 105, faults, &[]);
    assert_ne!(seen["dropped"], serde_json::json!({}), "{seen}");
}

#[test]
fn rabbitmq_keeps_its_promise_when_it_is_killed_and_restarted() {
    holds(
        "amqp+private:",
        201,
        "broker-down-at-start,broker-kill,broker-restart",
        &[],
    );
}

#[test]
fn rabbitmq_keeps_its_promise_over_a_bad_network() {
    let faults = "reset,half-open,stall,slow-link,connection-closed";
    let seen = holds("amqp+private:", 202, faults, &[]);
    assert!(seen["transport"]["resent"].as_u64() > Some(0), "{seen}");
}

#[test]
fn rabbitmq_keeps_its_promise_while_consumers_are_killed() {
    let faults = "consumer-kill,consumer-term,rebalance,consumer-slow,poison";
    let seen = holds("amqp+private:", 203, faults, &["--rounds", "2"]);
    let seen_twice = seen["duplicates_across_readers"].as_u64();
    assert!(seen_twice > Some(0), "no duplicate was seen: {seen}");
}

#[test]
fn rabbitmq_keeps_its_promise_while_it_blocks_and_producers_spool() {
    holds(
        "amqp+private:",
        204,
        "blocked,overflow,disk-full,torn-write,producer-kill",
        &["--spool"],
    );
}

#[test]
fn a_classic_queue_keeps_its_promise_while_both_sides_come_and_go() {
    let faults = "producer-term,producer-kill,consumer-term,reset";
    holds("amqp+private:verify?queue_type=classic", 205, faults, &[]);
}

#[test]
fn rabbitmq_ends_with_a_verify_that_is_killed() {
    // The command, its producers and consumers, the node's script, the node, its port mapper and
    // the shell that ends them.
    leaves_nothing("amqp+private:", &[], 9);
}
