//! The suite against the reference implementation.

use std::num::NonZeroUsize;

use baler_common::transport::{ChunkReader, ChunkWriter};
use baler_connector_testkit::{MemoryLimits, MemoryMedium, TestMedium, contract_tests};

struct Memory(MemoryMedium);

impl TestMedium for Memory {
    fn fresh() -> Self {
        let small = |value| NonZeroUsize::new(value).unwrap();
        Self(MemoryMedium::new(MemoryLimits {
            max_chunk_bytes: small(4096),
            window_chunks: small(16),
            window_bytes: small(8192),
            capacity_chunks: small(32),
        }))
    }

    fn writer(&mut self) -> Box<dyn ChunkWriter> {
        Box::new(self.0.writer())
    }

    fn reader(&mut self) -> Box<dyn ChunkReader> {
        Box::new(self.0.reader())
    }

    fn break_connections(&mut self) {
        self.0.break_connections();
    }

    fn stall(&mut self) {
        self.0.hold_confirmations(true);
    }

    fn resume(&mut self) {
        self.0.hold_confirmations(false);
    }
}

contract_tests!(Memory: reads redelivers breaks stalls many_writers many_readers);
