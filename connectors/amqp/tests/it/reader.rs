//! What a reader does beyond the contract.

use std::collections::HashSet;
use std::slice;
use std::time::{Duration, Instant};

use baler_common::transport::{ChunkReader, ChunkWriter, Received, RetryClass, Verdict};
use baler_connector_amqp::AmqpReader;
use baler_connector_testkit::{
    ChunkSource, PATIENCE, Pump, Tap, drive, read_label, within_patience,
};

use crate::support::{config, declared, fill, fresh_name, reader, shared_node, writer};

/// The next chunk, whatever else happens before.
fn next(reader: &mut AmqpReader) -> baler_common::transport::Delivery {
    within_patience("a chunk comes", || {
        match reader.receive(Instant::now() + Duration::from_millis(100)) {
            Ok(Received::Chunk(delivery)) => Some(delivery),
            Ok(_) => None,
            Err(error) => {
                assert!(error.is_retryable(), "{error}");
                None
            }
        }
    })
}

#[test]
fn killed_consumer_leaves_its_chunks_to_the_other() {
    let node = shared_node();
    let uri = node.uri(&format!("?queue={}&prefetch=16", fresh_name("competing")));
    fill(&uri, 200);
    // Holds what it gets and never settles it.
    let mut dying = Tap::holding(reader(&uri), 16);
    drive(
        "it holds some",
        &mut [],
        slice::from_mut(&mut dying),
        |_, taps| taps.iter().all(|tap| tap.unsettled().len() == 16),
    );
    let mut other = Tap::new(reader(&uri));
    drive(
        "the other gets the rest",
        &mut [],
        slice::from_mut(&mut other),
        |_, taps| taps.iter().all(|tap| tap.distinct() == 184),
    );
    drop(dying);
    drive(
        "and what was held",
        &mut [],
        slice::from_mut(&mut other),
        |_, taps| taps.iter().all(|tap| tap.distinct() == 200),
    );
    assert_eq!(
        other.received().len(),
        200,
        "nothing comes twice to one reader"
    );
}

#[test]
fn redelivery_is_flagged_and_counted() {
    let node = shared_node();
    let uri = node.uri(&format!("?queue={}", fresh_name("redelivered")));
    fill(&uri, 1);
    let mut reader = reader(&uri);
    for _ in 0..3 {
        let delivery = next(&mut reader);
        reader.settle(delivery.token, Verdict::Retry).unwrap();
    }
    let delivery = next(&mut reader);
    assert!(delivery.redelivered);
    assert_eq!(delivery.attempts, 3);
    let counts = reader.counts();
    assert_eq!(
        (
            counts.delivered,
            counts.redelivered,
            counts.max_delivery_count
        ),
        (4, 3, 3)
    );
}

#[test]
fn rejected_chunk_goes_to_the_queue_of_dead_letters() {
    let node = shared_node();
    let (queue, dead) = (fresh_name("alive"), fresh_name("dead"));
    let uri = node.uri(&format!("?queue={queue}&dead_letter_queue={dead}"));
    fill(&uri, 2);
    let mut alive = reader(&uri);
    let delivery = next(&mut alive);
    alive.settle(delivery.token, Verdict::Reject).unwrap();
    let mut buried = reader(&node.uri(&format!("?queue={dead}")));
    let again = next(&mut buried);
    assert_eq!(again.bytes, delivery.bytes);
    assert_eq!(again.meta, delivery.meta);
}

#[test]
fn acknowledgements_reach_the_broker_by_themselves() {
    let node = shared_node();
    let queue = fresh_name("settled");
    let uri = node.uri(&format!("?queue={queue}&queue_type=classic&ack_every=1000"));
    fill(&uri, 10);
    let mut tap = Tap::new(reader(&uri));
    drive(
        "all arrives",
        &mut [],
        slice::from_mut(&mut tap),
        |_, taps| taps.iter().all(|tap| tap.distinct() == 10),
    );
    // Fewer than are acknowledged by count: the clock does it.
    within_patience("the queue is empty", || {
        let listed = node
            .control(&["list_queues", "--silent", "name", "messages"])
            .unwrap();
        let line = listed
            .lines()
            .find(|line| line.starts_with(&queue))?
            .to_owned();
        line.ends_with("\t0").then_some(())
    });
}

#[test]
fn one_unsettled_chunk_does_not_stop_the_others() {
    let node = shared_node();
    let uri = node.uri(&format!("?queue={}&prefetch=8", fresh_name("stuck")));
    fill(&uri, 100);
    let mut reader = reader(&uri);
    let stuck = next(&mut reader);
    let mut labels = HashSet::from([read_label(&stuck.bytes)]);
    for _ in 1..100 {
        let delivery = next(&mut reader);
        labels.insert(read_label(&delivery.bytes));
        reader.settle(delivery.token, Verdict::Ack).unwrap();
    }
    assert_eq!(labels.len(), 100);
    let report = reader.close(Instant::now() + PATIENCE);
    assert_eq!(report.unsettled, 1);
    let mut again = crate::support::reader(&uri);
    assert_eq!(next(&mut again).bytes, stuck.bytes);
}

#[test]
fn demand_that_grows_takes_more_ahead_and_loses_nothing() {
    let node = shared_node();
    let uri = node.uri(&format!("?queue={}", fresh_name("demand")));
    fill(&uri, 120);
    let mut tap = Tap::holding(reader(&uri), 2);
    for demand in [2, 7, 30, 120] {
        tap.set_demand(demand);
        drive(
            "as many come",
            &mut [],
            slice::from_mut(&mut tap),
            |_, taps| taps.iter().all(|tap| tap.unsettled().len() == demand),
        );
    }
    assert_eq!(tap.distinct(), 120);
    tap.assert_ordered();
    tap.acknowledge();
    let (_, report) = tap.close(Instant::now() + PATIENCE);
    assert!(
        report.unsettled == 0 && report.error.is_none(),
        "{report:?}"
    );
    let mut again = reader(&uri);
    let rest = again.receive(Instant::now() + Duration::from_millis(300));
    assert!(matches!(rest, Ok(Received::Idle)), "{rest:?}");
}

#[test]
fn one_active_reader_keeps_its_place_when_its_demand_grows() {
    let node = shared_node();
    for queue_type in ["classic", "quorum"] {
        let queue = fresh_name("place");
        let uri = node.uri(&format!(
            "?queue={queue}&single_active=yes&queue_type={queue_type}"
        ));
        fill(&uri, 100);
        let mut active = Tap::holding(reader(&uri), 2);
        drive(
            "the first one has the place",
            &mut [],
            slice::from_mut(&mut active),
            |_, taps| taps[0].distinct() == 2,
        );
        let waiting = Tap::new(reader(&uri));
        within_patience("the other one is in line", || {
            let listed = node
                .control(&["list_consumers", "--silent", "queue_name"])
                .unwrap();
            (listed.lines().filter(|line| *line == queue).count() == 2).then_some(())
        });
        active.set_demand(100);
        let mut taps = [active, waiting];
        drive("it gets everything", &mut [], &mut taps, |_, taps| {
            taps[0].distinct() == 100
        });
        assert_eq!(taps[1].distinct(), 0);
        taps[0].assert_ordered();
    }
}

#[test]
fn owner_may_hold_more_than_is_taken_ahead() {
    let node = shared_node();
    for settings in ["", "&queue_type=classic", "&queue_type=stream"] {
        let queue = fresh_name("held");
        let uri = node.uri(&format!("?queue={queue}&prefetch=4{settings}"));
        fill(&uri, 100);
        let mut tap = Tap::holding(reader(&uri), 90);
        drive(
            "it holds what it demands",
            &mut [],
            slice::from_mut(&mut tap),
            |_, taps| taps.iter().all(|tap| tap.unsettled().len() == 90),
        );
        // Some of what it holds is settled out of order: that must not stop it either.
        for label in tap.unsettled().into_iter().skip(1).take(80) {
            tap.settle(label, Verdict::Ack);
        }
        drive(
            "the rest comes",
            &mut [],
            slice::from_mut(&mut tap),
            |_, taps| taps.iter().all(|tap| tap.distinct() == 100),
        );
        tap.assert_ordered();
        assert_eq!(tap.received().len(), 100, "nothing comes twice");
    }
}

#[test]
fn cancelled_consumer_comes_back_to_a_queue_declared_anew() {
    let node = shared_node();
    let queue = fresh_name("deleted");
    let uri = node.uri(&format!("?queue={queue}&queue_type=classic"));
    declared(&uri);
    let mut reader = reader(&uri);
    within_patience("it reads", || {
        (reader.counts().connections == 1).then_some(())
    });
    fill(&uri, 1);
    next(&mut reader);
    node.control(&["delete_queue", &queue]).unwrap();
    within_patience("it reads again", || {
        (reader.counts().connections == 2).then_some(())
    });
    fill(&uri, 1);
    next(&mut reader);
    assert!(reader.counts().failures >= 1);
}

#[test]
fn message_above_the_limit_is_told_as_damaged_and_passed() {
    let node = shared_node();
    let queue = fresh_name("oversize");
    let uri = node.uri(&format!("?queue={queue}"));
    declared(&uri);
    let mut source = ChunkSource::new(1);
    let mut pump = Pump::open(writer(&uri));
    pump.push([source.next(0, 3000), source.next(0, 100)]);
    drive(
        "both are confirmed",
        slice::from_mut(&mut pump),
        &mut [],
        |pumps, _| pumps.iter().all(Pump::is_done),
    );
    let mut tap = Tap::new(reader(&node.uri(&format!("?queue={queue}&max_chunk=1000"))));
    drive(
        "one arrives",
        &mut [],
        slice::from_mut(&mut tap),
        |_, taps| {
            taps.iter()
                .all(|tap| tap.distinct() == 1 && tap.damaged().len() == 1)
        },
    );
    assert_eq!(tap.damaged()[0].bytes.len(), 3000);
}

#[test]
fn reader_that_cannot_be_is_told_at_once_or_for_ever() {
    let error = AmqpReader::new(config("amqp://host?exchange=e")).unwrap_err();
    assert_eq!(error.class, RetryClass::Final);

    let node = shared_node();
    let address = node.address();
    let mut reader = reader(&format!("amqp://guest:s3cr3t-w0rd@{address}?queue=q"));
    for _ in 0..2 {
        let error = reader.receive(Instant::now() + PATIENCE).unwrap_err();
        assert_eq!(error.class, RetryClass::Final);
        let shown = format!("{error} {error:?} {reader:?}");
        assert!(!shown.contains("s3cr3t-w0rd"), "{shown}");
    }
}

/// Writers are closed by the pumps' drop; nothing here needs their report.
#[test]
fn writer_and_reader_without_a_queue_to_declare_say_what_is_missing() {
    let node = shared_node();
    let uri = node.uri(&format!("?queue={}&declare=no", fresh_name("absent")));
    let error = reader(&uri).receive(Instant::now() + PATIENCE).unwrap_err();
    assert_eq!(error.class, RetryClass::Final);
    assert!(error.message.contains("NOT_FOUND"), "{error}");
    let mut writer = writer(&uri);
    writer.reopen(Instant::now() + PATIENCE).unwrap();
}
