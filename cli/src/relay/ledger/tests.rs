use baler_common::transport::Chunk;
use baler_connector_testkit::{ChunkSource, MemoryMedium};

use super::*;

/// A ledger that waits for the fate of one chunk.
fn waiting() -> (Ledger, Chunk) {
    let mut ledger = Ledger::new(Box::new(MemoryMedium::default().reader()));
    let chunk = ChunkSource::new(1).next(0, 100);
    ledger.in_flight.push_back(InFlight {
        ticket: chunk.ticket,
        token: Token(0),
        origin: Origin {
            endpoint: "somewhere".into(),
            lane: "0".into(),
            position: 0,
        },
    });
    (ledger, chunk)
}

#[test]
#[should_panic(expected = "the outbox concludes each chunk in flight once")]
fn a_second_fate_of_a_chunk_is_a_fault_and_settles_nothing() {
    let (mut ledger, chunk) = waiting();
    for _ in 0..2 {
        let (chunk, end) = (chunk.clone(), End::Confirmed);
        ledger.conclude(Fate { chunk, end }, false).unwrap();
        assert_eq!((ledger.counts.forwarded, ledger.in_flight.len()), (1, 0));
    }
}
