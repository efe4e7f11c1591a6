//! What the rig needs of the program that measures: the media, which only the program names.

use std::fmt::Debug;
use std::net::SocketAddr;
use std::time::Instant;

use baler_common::transport::{ChunkReader, ChunkWriter};

use crate::failure::Failure;

/// The media of the program, and how it starts itself.
pub trait Program {
    /// The words behind the program's name that make it call [`obey`](super::obey) with the word
    /// behind them.
    fn words(&self) -> &[&str];

    /// Connects to a medium and ends the connection; a medium that is opened by its readers is always
    /// there.
    ///
    /// # Errors
    ///
    /// The medium cannot be reached; where it should be.
    fn reach(&self, uri: &str) -> Result<(), Failure>;

    /// The sending end of a medium, not opened.
    ///
    /// # Errors
    ///
    /// The URI is wrong.
    fn writer(&self, uri: &str) -> Result<Box<dyn ChunkWriter>, Failure>;

    /// The receiving end of a medium, opened.
    ///
    /// # Errors
    ///
    /// The URI is wrong, or the medium cannot be opened.
    fn reader(&self, uri: &str) -> Result<OpenReader, Failure>;

    /// The medium's client library alone, connected; `awaiting`: each message before the next.
    ///
    /// # Errors
    ///
    /// The URI is wrong, the medium cannot be reached, or there is nothing to compare with.
    fn plain(&self, uri: &str, awaiting: bool) -> Result<Box<dyn PlainWriter>, Failure>;

    /// A Kafka cluster in this process with one topic.
    ///
    /// # Errors
    ///
    /// The program was built without Kafka, or the cluster does not start.
    fn cluster(&self, topic: &str, partitions: u16) -> Result<Box<dyn Cluster>, Failure>;
}

/// The receiving end of a medium, opened.
pub struct OpenReader {
    /// The reader.
    pub reader: Box<dyn ChunkReader>,
    /// The address on which it waits for senders, if it does.
    pub listens_on: Option<SocketAddr>,
}

impl Debug for OpenReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenReader")
            .field("listens_on", &self.listens_on)
            .finish_non_exhaustive()
    }
}

/// A client library, alone. Its calls block.
pub trait PlainWriter {
    /// Sends each of these as a message, in order; waits while too many are unconfirmed.
    ///
    /// # Errors
    ///
    /// The medium does not take them.
    fn publish(&mut self, rows: &[Vec<u8>]) -> Result<(), Failure>;

    /// How many messages are confirmed, as far as was looked.
    fn confirmed(&self) -> u64;

    /// Waits until everything is confirmed, `by` at most.
    ///
    /// # Errors
    ///
    /// It is not.
    fn settle(&mut self, by: Instant) -> Result<(), Failure>;
}

/// A Kafka cluster, which lives as long as this value.
pub trait Cluster {
    /// `host:port`.
    fn address(&self) -> String;

    /// So many bytes of a partition it keeps, and forgets what is older, whether it was read or not.
    fn retained_bytes(&self) -> u64;
}
