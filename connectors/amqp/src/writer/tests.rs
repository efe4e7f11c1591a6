//! A connection's state by itself.

use baler_common::transport::{Capability, DeliveryReport, Durability, Order, Outcome};
use baler_connector_testkit::ChunkSource;
use lapin::Confirmation as Answer;

use super::state::State;
use crate::SCHEME;

fn opened(chunks: usize) -> State {
    let mut state = State::default();
    state.reset();
    state.open();
    let capability = Capability::new(SCHEME, Order::PerLane, Durability::Disk);
    for chunk in ChunkSource::new(1).take(chunks) {
        state.offer(chunk, &capability).unwrap();
    }
    state
}

fn published(state: &mut State) -> Vec<u64> {
    state
        .take_outgoing()
        .iter()
        .map(|chunk| chunk.ticket)
        .collect()
}

#[test]
fn first_chunk_of_a_connection_goes_alone_and_nothing_overtakes_it() {
    let mut state = opened(3);
    assert_eq!(published(&mut state), [0]);
    assert_eq!(
        published(&mut state),
        [0; 0],
        "the others wait for its answer"
    );
    state.take_answer(Ok(Answer::Nack(None)), "there").unwrap();
    assert_eq!(published(&mut state), [0; 0]);
    let refused = std::mem::take(&mut state.delivery_reports);
    let tickets: Vec<_> = refused.iter().map(|it| it.ticket).collect();
    assert_eq!(tickets, [0, 1, 2]);
    for DeliveryReport { outcome, .. } in refused {
        assert!(matches!(outcome, Outcome::Refused(error) if error.is_retryable()));
    }

    let mut state = opened(3);
    assert_eq!(published(&mut state), [0]);
    state.take_answer(Ok(Answer::Ack(None)), "there").unwrap();
    assert_eq!(published(&mut state), [1, 2]);
    // The next connection begins anew.
    state.reset();
    assert!(!state.is_proven && state.window.is_empty());
}
