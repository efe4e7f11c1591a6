//! What a child process is told to do, and what it answers: one line of JSON each.

use std::io::{self, BufRead as _, Write};

use baler_connector_kafka::EmbeddedCluster;
use serde::{Deserialize, Serialize};

use super::case::{Broker, Way};
use super::writing;
use crate::failure::Failure;

/// What a child process is for.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) enum Task {
    /// To be librdkafka's mock cluster with this topic of one partition, until it has nothing more
    /// to read; it says where it listens.
    Mock(String),
    /// To write records; it says a [`Written`].
    Write(Writing),
}

/// Records to write.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Writing {
    pub(super) broker: Broker,
    pub(super) way: Way,
    /// `host:port`.
    pub(super) address: String,
    /// The queue or topic; it exists.
    pub(super) name: String,
    /// RabbitMQ's `x-queue-type`.
    pub(super) queue_type: String,
    /// So many, after the warm-up.
    pub(super) records: u64,
    /// So many first, which are not measured.
    pub(super) warm_up: u64,
    pub(super) seed: u64,
}

/// What writing cost, the warm-up left out.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct Written {
    pub(super) wall_seconds: f64,
    /// User and system time of all threads of the writing process.
    pub(super) cpu_seconds: f64,
    /// Records that the broker confirmed.
    pub(super) records: u64,
    /// Messages that the broker confirmed.
    pub(super) messages: u64,
    /// All messages of the process: those of the warm-up and the last one, which says that it ends.
    pub(super) all_messages: u64,
    /// Their bytes, without what the protocol puts around them.
    pub(super) payload_bytes: u64,
}

/// Does what a parent process wants, if this is a child: its only argument behind `child` is a
/// task. `None` if it is none.
pub fn child() -> Option<Result<(), Failure>> {
    let mut arguments = std::env::args().skip(1);
    if arguments.next().as_deref() != Some("child") {
        return None;
    }
    let task = arguments.next().unwrap_or_default();
    Some(
        serde_json::from_str(&task)
            .map_err(Failure::cannot("understand the task"))
            .and_then(execute),
    )
}

fn execute(task: Task) -> Result<(), Failure> {
    match task {
        Task::Mock(topic) => {
            let started = EmbeddedCluster::start(&topic, 1);
            let cluster = started.map_err(Failure::cannot("start the mock cluster"))?;
            say(cluster.bootstrap_servers())?;
            // Until the parent wants nothing more, or is gone.
            for line in io::stdin().lock().lines() {
                line.map_err(Failure::cannot("read orders"))?;
            }
            Ok(())
        }
        Task::Write(writing) => {
            let written = writing::write(&writing)?;
            let line = serde_json::to_string(&written);
            say(&line.map_err(Failure::cannot("write JSON"))?)
        }
    }
}

fn say(line: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    let said = writeln!(out, "{line}").and_then(|()| out.flush());
    said.map_err(Failure::cannot("answer"))
}
