//! An endpoint of the user's: its broker is not ours to harm.

use std::time::{Duration, Instant};

use super::Stand;
use crate::args::{FaultChoice, VerifyArgs};
use crate::endpoint;
use crate::exit::Failure;

/// How long it may take to connect.
const REACH: Duration = Duration::from_secs(10);

/// The endpoint of a URI.
#[derive(Debug)]
pub(super) struct Own {
    uri: String,
}

impl Own {
    /// # Errors
    ///
    /// The URI is wrong.
    pub(super) fn new(uri: &str) -> Result<Self, Failure> {
        // What is wrong with it is said now, once, and not by each process.
        drop(endpoint::writer(uri)?);
        Ok(Self { uri: uri.into() })
    }

    /// Whether one process alone can read: it listens on the address, or follows the folder.
    fn has_one_reader(&self) -> bool {
        self.uri.starts_with("tcp:") || self.uri.starts_with("file:")
    }
}

impl Stand for Own {
    fn faults(&self) -> &'static [FaultChoice] {
        if self.has_one_reader() {
            &[]
        } else {
            &[FaultChoice::Rebalance]
        }
    }

    fn producer_uri(&self, _producer: u16) -> String {
        self.uri.clone()
    }

    fn consumer_uri(&self, _consumer: u16) -> String {
        self.uri.clone()
    }

    fn orders_competitors(&self) -> bool {
        !self.uri.starts_with("amqp")
    }

    fn consumers(&self, args: &VerifyArgs) -> u16 {
        if self.has_one_reader() {
            1
        } else {
            args.consumers
        }
    }

    /// Connects once: that nobody is there is no broken promise.
    fn start(&mut self) -> Result<(), Failure> {
        if self.has_one_reader() {
            return Ok(());
        }
        let mut writer = endpoint::writer(&self.uri)?.writer;
        let reached = writer.reopen(Instant::now() + REACH);
        writer.close(Instant::now() + REACH);
        reached.map_err(Failure::from)
    }
}
