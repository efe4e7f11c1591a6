//! SIGTERM of both ends of a queue.

use std::fs;
use std::time::Instant;

use baler_connector_testkit::faults::RabbitMqNode;
use serde_json::Value;

use super::{
    Broker, DEADLINE, Other, SLACK, STATES, adds_up, generate_for_ever, receive_queue,
    received_adds_up, sum, terminate, wait_for_records,
};

#[test]
fn both_ends_of_rabbitmq_end_in_time_and_add_up() {
    let folder = tempfile::tempdir().unwrap();
    let broker = RabbitMqNode::start().unwrap();
    for (number, state) in STATES.into_iter().enumerate() {
        let uri = broker.uri(&format!("?queue=sigterm-{number}"));
        let (receiver, [records, summary]) =
            receive_queue(&uri, &folder.path().join(number.to_string()), "2");
        let sender = generate_for_ever(&uri, state);
        wait_for_records(&records);
        let frozen = broker.set(state);
        let what = format!("generate to amqp, {state:?}");
        let (code, report, _) = terminate(sender, &what, state);
        assert_eq!(code, Some(75), "{what}: {report}");
        adds_up(&report, &what);
        if state == Broker::Up {
            assert_eq!(sum(&report["dropped"]), 0, "{what}: {report}");
        }
        receiver.signal("TERM");
        let asked = Instant::now();
        let (_, _, stderr) = receiver.end();
        let took = asked.elapsed();
        assert!(took < DEADLINE + SLACK, "receive, {state:?}: {took:?}");
        println!(
            "receive from amqp, {state:?}: ended after {} ms",
            took.as_millis()
        );
        let summary = fs::read_to_string(summary).unwrap_or_else(|_| panic!("{stderr}"));
        let summary: Value = serde_json::from_str(&summary).unwrap();
        received_adds_up(&fs::read_to_string(records).unwrap(), &summary);
        drop(frozen);
    }
}
