//! librdkafka's mock cluster in a process of its own.
//!
//! It keeps 5 MiB or 100,000 batches of each partition, then drops the oldest without a word.

use std::io::{self, BufRead as _};
use std::time::{Duration, Instant};

use baler_rig::child::Child;
use baler_rig::lines::{say, understand};
use rdkafka::mocking::MockCluster;
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::role::Role;

/// A cluster of one broker with one topic.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Mock {
    pub(crate) topic: String,
    pub(crate) partitions: u16,
}

/// How long it may take to do what it is told.
const PATIENCE: Duration = Duration::from_secs(30);

/// Its one broker.
const BROKER: i32 = 1;

/// A cluster that runs until this value is dropped.
#[derive(Debug)]
pub(crate) struct MockBroker {
    child: Child,
    address: String,
}

impl MockBroker {
    pub(crate) fn start(topic: &str, partitions: u16) -> Result<Self, Failure> {
        let role = Role::Mock(Mock {
            topic: topic.to_owned(),
            partitions,
        });
        let child = role.start()?;
        let mut broker = Self {
            child,
            address: String::new(),
        };
        broker.address = broker.answer()?;
        Ok(broker)
    }

    /// `host:port`.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// Cuts all connections and refuses new ones.
    pub(crate) fn down(&mut self) -> Result<(), Failure> {
        self.order(&Order::Down)
    }

    /// Accepts connections again.
    pub(crate) fn up(&mut self) -> Result<(), Failure> {
        self.order(&Order::Up)
    }

    fn order(&mut self, order: &Order) -> Result<(), Failure> {
        let failed = Failure::cannot("order the mock cluster");
        let line = serde_json::to_string(order).map_err(Failure::cannot("write JSON"))?;
        self.child.tell(&line).map_err(failed)?;
        match self.answer()?.as_str() {
            "" => Ok(()),
            error => Err(Failure::new(error)),
        }
    }

    fn answer(&self) -> Result<String, Failure> {
        let line = self.child.line(Instant::now() + PATIENCE);
        understand(&line.map_err(Failure::cannot("hear of the mock cluster"))?)
    }
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
enum Order {
    Down,
    Up,
}

/// Is that cluster until there are no more orders; says where it is, then an error, or nothing,
/// for each order.
pub(crate) fn serve(mock: &Mock) -> Result<(), Failure> {
    let failed = Failure::cannot("start the mock cluster");
    let cluster = MockCluster::new(BROKER).map_err(&failed)?;
    cluster
        .create_topic(&mock.topic, i32::from(mock.partitions), 1)
        .map_err(&failed)?;
    say(&cluster.bootstrap_servers())?;
    for line in io::stdin().lock().lines() {
        let line = line.map_err(Failure::cannot("read orders"))?;
        let done = match understand(&line)? {
            Order::Down => cluster.broker_down(BROKER),
            Order::Up => cluster.broker_up(BROKER),
        };
        say(&done
            .err()
            .map_or_else(String::new, |error| error.to_string()))?;
    }
    Ok(())
}
