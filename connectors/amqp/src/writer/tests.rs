//! A connection's state by itself.

use baler_common::transport::{Capability, DeliveryReport, Durability, Order, Outcome};
use baler_connector_testkit::ChunkSource;
use lapin::Confirmation as Answer;

use super::state::{ConnectionState, take_answer, take_outgoing};
use crate::SCHEME;

fn opened(chunks: usize) -> ConnectionState {
    let connection = ConnectionState::unopened("there".into());
    connection.open();
    let capability = Capability::new(SCHEME, Order::PerLane, Durability::Disk);
    for chunk in ChunkSource::new(1).take(chunks) {
        connection.writer.offer(chunk, &capability).unwrap();
    }
    connection
}

fn published(connection: &ConnectionState) -> Vec<u64> {
    let chunks = take_outgoing(&mut connection.writer.lock());
    chunks.iter().map(|chunk| chunk.ticket).collect()
}

fn answer(connection: &ConnectionState, answer: Answer) {
    take_answer(&mut connection.writer.lock(), Ok(answer), "there").unwrap();
}

#[test]
fn first_chunk_of_a_connection_goes_alone_and_nothing_overtakes_it() {
    let connection = opened(3);
    assert_eq!(published(&connection), [0]);
    assert_eq!(
        published(&connection),
        [0; 0],
        "the others wait for its answer"
    );
    answer(&connection, Answer::Nack(None));
    assert_eq!(published(&connection), [0; 0]);
    let mut refused = Vec::new();
    connection.writer.delivery_reports(&mut refused).unwrap();
    let tickets: Vec<_> = refused.iter().map(|it| it.ticket).collect();
    assert_eq!(tickets, [0, 1, 2]);
    for DeliveryReport { outcome, .. } in refused {
        assert!(matches!(outcome, Outcome::Refused(error) if error.is_retryable()));
    }

    let connection = opened(3);
    assert_eq!(published(&connection), [0]);
    answer(&connection, Answer::Ack(None));
    assert_eq!(published(&connection), [1, 2]);
    // The next connection begins anew.
    connection.reset();
    let state = connection.writer.lock();
    assert!(!state.medium.is_proven && state.window.is_empty());
}
