//! The same over brokers: RabbitMQ nodes, and Kafka's mock cluster.

mod outside;

use std::collections::BTreeSet;
use std::time::Duration;

use baler::ConsumerConfig;
use baler_connector_kafka::EmbeddedCluster;
use baler_connector_testkit::faults::RabbitMqNode;

use crate::killed;
use crate::support::{Order, send_orders};

/// The node that all tests of this build share.
fn shared_node() -> RabbitMqNode {
    let program = std::env::current_exe().unwrap();
    RabbitMqNode::shared(&program.with_file_name("baler-rabbitmq")).unwrap()
}

/// A queue of its own.
fn queue(node: &RabbitMqNode, name: &str) -> String {
    node.uri(&format!("/?queue={name}-{}", std::process::id()))
}

#[test]
fn a_consumer_of_rabbitmq_that_is_killed_loses_nothing() {
    let node = shared_node();
    let uri = queue(&node, "killed");
    killed::loses_nothing(&uri, &uri);
}

#[test]
fn a_handlers_error_leads_to_the_quarantine_over_brokers() {
    let node = shared_node();
    let cluster = EmbeddedCluster::start("orders", 1).unwrap();
    let kafka = format!(
        "kafka://{}/orders?group.id=test",
        cluster.bootstrap_servers()
    );
    for uri in [queue(&node, "refused"), kafka] {
        let folder = tempfile::tempdir().unwrap();
        send_orders(&uri, 20, 2);
        let mut config: ConsumerConfig = uri.parse().unwrap();
        config.quarantine = Some(folder.path().display().to_string().into());
        config.max_attempts = 3;
        config.idle_timeout = Some(Duration::from_secs(3));
        let mut refused = 0;
        let mut handled = BTreeSet::new();
        let consumer = baler::consume::<Order>(config).unwrap();
        let report = consumer.for_each(|order| match order.id {
            7 => {
                refused += 1;
                Err("no")
            }
            id => {
                handled.insert(id);
                Ok(())
            }
        });
        let report = report.unwrap();
        assert_eq!((refused, handled.len()), (3, 19), "{uri}");
        assert_eq!((report.given_back, report.quarantined), (3, 1), "{uri}");
    }
}
