//! An endpoint of the user's: its broker is not ours to harm.

use super::Stand;
use crate::args::FaultChoice;

/// The endpoint of a URI.
#[derive(Debug)]
pub(super) struct Own {
    uri: String,
}

impl Own {
    pub(super) fn new(uri: &str) -> Self {
        Self { uri: uri.into() }
    }
}

impl Stand for Own {
    fn faults(&self) -> &'static [FaultChoice] {
        if self.pairs() {
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

    fn pairs(&self) -> bool {
        // One process listens on an address, one process writes a folder.
        self.uri.starts_with("tcp:") || self.uri.starts_with("file:")
    }
}
