//! Readers that only look.

use std::time::{Duration, Instant};

use baler_common::transport::{ChunkReader, Received};
use baler_connector_amqp::AmqpReader;
use baler_connector_testkit::{PATIENCE, RabbitMq, Tap, drive, within_patience};

use crate::support::{config, declared, fill, fresh_name, reader};

fn looking(uri: &str, from_start: bool) -> Box<AmqpReader> {
    let config = config(uri).tap(from_start).unwrap();
    Box::new(AmqpReader::new(config).unwrap())
}

#[test]
fn look_at_an_exchange_takes_nothing_from_its_queue() {
    let node = RabbitMq::shared();
    let exchange = fresh_name("looked-at");
    let uri = node.uri(&format!("?exchange={exchange}&exchange_type=fanout"));
    let consumed = format!("{uri}&queue={}", fresh_name("consumed"));
    declared(&consumed);
    let mut look = looking(&uri, false);
    // It sees what is routed once its queue is there.
    within_patience("its queue is bound", || {
        fill(&uri, 1);
        let received = look.receive(Instant::now() + Duration::from_millis(200));
        matches!(received, Ok(Received::Chunk(_))).then_some(())
    });
    fill(&uri, 50);
    let mut taps = [Tap::new(look), Tap::new(reader(&consumed))];
    drive("both get all", &mut [], &mut taps, |_, taps| {
        taps.iter().all(|tap| tap.distinct() >= 50)
    });
}

#[test]
fn look_at_a_stream_takes_nothing_from_its_readers() {
    let node = RabbitMq::shared();
    let uri = node.uri(&format!(
        "?queue={}&queue_type=stream",
        fresh_name("stream")
    ));
    declared(&uri);
    fill(&uri, 30);
    let mut taps = [Tap::new(looking(&uri, true)), Tap::new(reader(&uri))];
    drive("both get all", &mut [], &mut taps, |_, taps| {
        taps.iter().all(|tap| tap.distinct() == 30)
    });
    let mut late = looking(&uri, false);
    let received = late
        .receive(Instant::now() + Duration::from_secs(1))
        .unwrap();
    assert!(matches!(received, Received::Idle), "{received:?}");
    late.close(Instant::now() + PATIENCE);
}
