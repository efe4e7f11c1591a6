//! Readers that only look.

use std::time::{Duration, Instant};

use baler_common::transport::{ChunkReader, Received, RetryClass};
use baler_connector_amqp::AmqpReader;
use baler_connector_testkit::{PATIENCE, Tap, drive, within_patience};

use crate::support::{config, declared, fill, fresh_name, reader, shared_node};

fn looking(uri: &str, from_start: bool) -> Box<AmqpReader> {
    let config = config(uri).tap(from_start).unwrap();
    Box::new(AmqpReader::new(config).unwrap())
}

#[test]
fn look_at_an_exchange_takes_nothing_from_its_queue() {
    let node = shared_node();
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
    let node = shared_node();
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

fn inspecting(uri: &str) -> Box<AmqpReader> {
    let config = config(uri).inspect().unwrap();
    Box::new(AmqpReader::new(config).unwrap())
}

#[test]
fn queue_without_consumers_is_shown_and_keeps_all() {
    let node = shared_node();
    for queue_type in ["classic", "quorum"] {
        let queue = fresh_name("inspected");
        let declared = node.uri(&format!("?queue={queue}&queue_type={queue_type}"));
        fill(&declared, 30);
        // Its type and its limits are not asked for, and no chunk is too large to be given back.
        let uri = node.uri(&format!("?queue={queue}&max_length=7&max_chunk=10"));
        let mut look = Tap::holding(inspecting(&uri), 1000);
        within_patience("it shows all", || {
            look.poll(Duration::from_millis(10));
            (look.unsettled().len() == 30).then_some(())
        });
        assert!(look.damaged().is_empty(), "{:?}", look.damaged());
        let (_, report) = look.close(Instant::now() + PATIENCE);
        assert!(report.error.is_none(), "{report:?}");
        let mut taps = [Tap::new(reader(&declared))];
        drive("all is there", &mut [], &mut taps, |_, taps| {
            taps[0].distinct() == 30
        });
    }
}

#[test]
fn queue_with_consumers_is_refused_and_they_miss_nothing() {
    let node = shared_node();
    let uri = node.uri(&format!("?queue={}", fresh_name("consumed")));
    declared(&uri);
    let mut taps = [Tap::holding(reader(&uri), 1000)];
    fill(&uri, 1);
    drive("it consumes", &mut [], &mut taps, |_, taps| {
        taps[0].distinct() == 1
    });
    let refused = inspecting(&uri).receive(Instant::now() + PATIENCE);
    let error = refused.unwrap_err();
    assert_eq!(error.class, RetryClass::Final, "{error}");
    assert!(error.message.contains("has consumers (1)"), "{error}");
    assert!(error.message.contains("exchange=name"), "{error}");
    fill(&uri, 50);
    drive("it gets all", &mut [], &mut taps, |_, taps| {
        taps[0].received().len() == 51
    });
    assert!(taps[0].deliveries().all(|delivery| !delivery.redelivered));
}

#[test]
fn queue_that_is_not_there_is_not_made_by_looking() {
    let node = shared_node();
    let queue = fresh_name("missing");
    let mut look = inspecting(&node.uri(&format!("?queue={queue}")));
    let error = look.receive(Instant::now() + PATIENCE).unwrap_err();
    assert_eq!(error.class, RetryClass::Final, "{error}");
    assert!(error.message.contains("no queue"), "{error}");
    assert!(
        !node
            .control(&["list_queues", "name"])
            .unwrap()
            .contains(&queue)
    );
}
