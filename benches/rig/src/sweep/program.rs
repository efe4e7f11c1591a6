//! The interface of the measuring program, and the tasks of its child processes.

use std::any::Any;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use baler_common::transport::{ChunkWriter, OpenReader};
use serde::{Deserialize, Serialize};

use super::case::Case;
use crate::harness::Failure;
use crate::process::Child;

/// The media of the program, and how it starts itself.
pub trait Program {
    /// The arguments that make the program call [`run_order`](super::run_order) with the argument
    /// after them.
    fn words(&self) -> &[&str];

    /// Connects to a medium and ends the connection. A medium that its readers open counts as
    /// reachable.
    ///
    /// # Errors
    ///
    /// The medium cannot be reached; the error names its address.
    fn reach(&self, uri: &str) -> Result<(), Failure>;

    /// Returns the sending end of a medium, not opened.
    ///
    /// # Errors
    ///
    /// The URI is wrong.
    fn writer(&self, uri: &str) -> Result<Box<dyn ChunkWriter>, Failure>;

    /// Returns the open receiving end of a medium.
    ///
    /// # Errors
    ///
    /// The URI is wrong, or the medium cannot be opened.
    fn reader(&self, uri: &str) -> Result<OpenReader, Failure>;

    /// Returns the medium's client library alone, connected. With `awaiting` each message is
    /// confirmed before the next is sent.
    ///
    /// # Errors
    ///
    /// The URI is wrong, the medium cannot be reached, or there is no client library to compare
    /// with.
    fn plain(&self, uri: &str, awaiting: bool) -> Result<Box<dyn PlainWriter>, Failure>;

    /// A Kafka cluster in this process with one topic: its `host:port`, and a value as long as which
    /// it lives.
    ///
    /// # Errors
    ///
    /// The program was built without Kafka, or the cluster does not start.
    fn cluster(&self, topic: &str, partitions: u16) -> Result<(String, Box<dyn Any>), Failure>;
}

/// A client library, alone. Its calls block.
pub trait PlainWriter {
    /// Sends each row as a message, in order. Waits while too many are unconfirmed.
    ///
    /// # Errors
    ///
    /// The medium does not take them.
    fn publish(&mut self, rows: &[Vec<u8>]) -> Result<(), Failure>;

    /// Returns how many messages are known to be confirmed.
    fn confirmed(&self) -> u64;

    /// Waits until everything is confirmed, `by` at most.
    ///
    /// # Errors
    ///
    /// Some messages are still unconfirmed.
    fn settle(&mut self, by: Instant) -> Result<(), Failure>;
}

/// The task of a child process.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) enum Order {
    /// Be a Kafka cluster until standard input ends; print the address.
    Cluster { topic: String, partitions: u16 },
    /// Read and check runs from this URI.
    Read(String),
    /// Write a run.
    Write(Writing),
}

impl Order {
    /// Starts a child process with this task.
    pub(super) fn start(&self, program: &dyn Program) -> Result<Child, Failure> {
        Child::with_order(program.words(), self)
    }
}

/// A run to write.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Writing {
    pub(super) uri: String,
    pub(super) case: Case,
    pub(super) run: u32,
    pub(super) seed: u64,
    /// The file with the user's records, if there are any.
    pub(super) records: Option<PathBuf>,
    /// The time of the load before the measurement.
    pub(super) warm_up: Duration,
    /// The measured time.
    pub(super) seconds: u32,
    /// The maximum number of records that were emitted and have not arrived. The parent sends the
    /// number of arrived records.
    pub(super) max_under_way: Option<u64>,
}
