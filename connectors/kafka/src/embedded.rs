//! A cluster inside the process, for trying things out: librdkafka's mock.

use std::fmt;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use rdkafka::error::KafkaResult;
use rdkafka::mocking::MockCluster;

use crate::error::KafkaConfigError;

/// A cluster inside the process: librdkafka's mock, which other processes of the machine can reach.
///
/// It keeps 5 MiB or 100,000 batches of each partition in memory, then drops the oldest without a
/// word: it is for trying things out. It lives until this value is dropped.
pub struct EmbeddedCluster {
    bootstrap_servers: Box<str>,
    /// Its end wakes the thread that keeps the cluster, which cannot leave that thread.
    _alive: Sender<()>,
}

impl fmt::Debug for EmbeddedCluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EmbeddedCluster")
            .field("bootstrap_servers", &self.bootstrap_servers)
            .finish_non_exhaustive()
    }
}

impl EmbeddedCluster {
    /// Starts one broker on a port of the loopback, with one topic.
    ///
    /// # Errors
    ///
    /// No port can be listened on, or the topic's name or number of partitions cannot be.
    pub fn start(topic: &str, partitions: u16) -> Result<Self, KafkaConfigError> {
        let failed = |error: &dyn fmt::Display| KafkaConfigError::Embedded {
            message: error.to_string().into(),
        };
        let (started, told) = channel();
        let (alive, ended) = channel();
        let topic = topic.to_owned();
        thread::Builder::new()
            .name("baler-kafka-mock".into())
            .spawn(move || keep(&topic, partitions, &started, &ended))
            .map_err(|error| failed(&error))?;
        let bootstrap_servers = told
            .recv()
            .map_err(|error| failed(&error))?
            .map_err(|error| failed(&error))?;
        Ok(Self {
            bootstrap_servers: bootstrap_servers.into(),
            _alive: alive,
        })
    }

    /// Where it listens: `127.0.0.1:port`.
    pub fn bootstrap_servers(&self) -> &str {
        &self.bootstrap_servers
    }
}

/// Starts a cluster, says where it is, and keeps it until nobody needs it.
fn keep(topic: &str, partitions: u16, started: &Sender<KafkaResult<String>>, ended: &Receiver<()>) {
    let cluster = MockCluster::new(1).and_then(|cluster| {
        cluster.create_topic(topic, i32::from(partitions), 1)?;
        Ok(cluster)
    });
    let (cluster, bootstrap) = match cluster {
        Ok(cluster) => {
            let bootstrap = cluster.bootstrap_servers();
            (Some(cluster), Ok(bootstrap))
        }
        Err(error) => (None, Err(error)),
    };
    // Who started it waits for this line; if it does not, nobody needs the cluster.
    started.send(bootstrap).ok();
    // Nothing is ever sent: an error is the end.
    ended.recv().ok();
    drop(cluster);
}
