//! Three nodes that are one broker.

use std::time::Duration;

use baler_connector_testkit::faults::RabbitMqCluster;

use crate::traffic::{Order, Traffic};

#[test]
fn loss_of_the_leader_loses_nothing_confirmed() {
    let cluster = RabbitMqCluster::start(3).unwrap();
    let mut traffic = Traffic::new(&cluster.uri("?queue=q&heartbeat=2s"));
    traffic.confirm(300);
    for node in cluster.nodes() {
        node.sync_declarations().unwrap();
    }
    let leader = cluster
        .leader("q")
        .unwrap()
        .expect("the queue has a leader");
    let address = leader.address();
    leader.kill().unwrap();
    // The other two elect another one.
    let passed = traffic.pass();
    assert!(
        passed < Duration::from_secs(30),
        "chunks passed after {passed:?} only"
    );
    traffic.confirm(300);
    let next = cluster
        .leader("q")
        .unwrap()
        .expect("the queue has a leader again");
    assert_ne!(next.address(), address);
    // The lost node comes back and another one goes.
    leader.restart().unwrap();
    leader.control(&["await_startup"]).unwrap();
    traffic.confirm(300);
    next.stop().unwrap();
    traffic.pass();
    traffic.confirm(300);
    traffic.order = Order::AllButRedelivered;
    traffic.end();
}
