//! A reader that is at its end.

use std::time::Instant;

use baler_common::transport::{
    ChunkReader, Order, ReaderCapability, ReaderCloseReport, Received, Settled, Token,
    TransportError, Verdict,
};

use crate::{NullConfig, SCHEME};

/// A reader that is always at its end. Never blocks.
#[derive(Debug)]
pub struct NullReader {
    capability: ReaderCapability,
}

impl NullReader {
    /// Creates a reader.
    pub fn new(_config: NullConfig) -> Self {
        let mut capability = ReaderCapability::new(SCHEME, Order::PerLane);
        capability.redelivers = false;
        capability.ends = true;
        Self { capability }
    }
}

impl ChunkReader for NullReader {
    fn capability(&self) -> &ReaderCapability {
        &self.capability
    }

    fn set_demand(&mut self, _chunks: usize) {}

    fn receive(&mut self, _by: Instant) -> Result<Received, TransportError> {
        Ok(Received::End)
    }

    fn settle(&mut self, _token: Token, _verdict: Verdict) -> Result<Settled, TransportError> {
        Ok(Settled::Stale)
    }

    fn close(self: Box<Self>, _by: Instant) -> ReaderCloseReport {
        ReaderCloseReport::default()
    }
}
