//! A receiver takes no memory for announced bytes before they are sent.
//!
//! A test binary of its own, because it counts every allocation of its process.

#![cfg(test)]

use std::num::NonZeroUsize;

use baler_connector_tcp::{TcpConfig, TcpReader, TcpWriter};
use baler_connector_testkit::hostile::{LIVE_PRODUCER, stall_in_large_chunks};
use baler_connector_testkit::{ChunkSource, Pump, Tap, drive_pair};

#[path = "../../../common/tests/it/counting.rs"]
mod counting;

#[global_allocator]
static ALLOCATOR: counting::Counting = counting::Counting;

/// The memory for chunks. Chunks that have arrived in part get a quarter of it, and one of them as
/// much as it needs.
const MEMORY_BYTES: usize = 8 << 20;

/// The other memory of a connection: its buffers, and the buffers of its sender in this process.
const CONNECTION_BYTES: usize = 256 << 10;

#[test]
fn chunks_that_are_announced_and_not_sent_cost_no_memory() {
    for (senders, sent) in [(100, 0), (64, 1 << 20)] {
        let mut config = TcpConfig::new("127.0.0.1", 0);
        config.memory_bytes = NonZeroUsize::new(MEMORY_BYTES).unwrap();
        let reader = TcpReader::bind(config).unwrap();
        let address = reader.local_addr();
        let mut tap = Tap::new(Box::new(reader));
        let peak = counting::peak_of(|| {
            let _stalled = stall_in_large_chunks(address, senders, sent);
            // This chunk comes later: the receiver has read the bytes of the others.
            let config = TcpConfig::new("127.0.0.1", address.port());
            let mut pump = Pump::open(Box::new(TcpWriter::new(config)));
            pump.push(ChunkSource::new(LIVE_PRODUCER).take(50));
            drive_pair("the live sender", &mut pump, &mut tap, |pump, tap| {
                pump.is_done() && tap.distinct() == 50
            });
        });
        // For the announced lengths it would be 16 MiB a sender.
        let allowed = MEMORY_BYTES + senders * CONNECTION_BYTES;
        assert!(peak <= allowed, "{senders} senders: {} KiB", peak >> 10);
        assert!(peak > senders << 10, "nothing was counted");
    }
}
