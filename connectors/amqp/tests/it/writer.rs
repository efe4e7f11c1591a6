//! What the broker can say to a writer.

use std::time::{Duration, Instant};

use baler_common::transport::{ChunkWriter, Outcome, RejectReason, Rejected, RetryClass};
use baler_connector_amqp::{AmqpReader, AmqpWriter};
use baler_connector_testkit::faults::{RABBITMQ_MAX_MESSAGE_BYTES, RabbitMqNode};
use baler_connector_testkit::{ChunkSource, PATIENCE, Pump, Tap, drive_pair, within_patience};

use crate::support::{config, declared, fresh_name, reader, shared_node, writer};

fn opened(uri: &str) -> Box<AmqpWriter> {
    let mut writer = writer(uri);
    writer.reopen(Instant::now() + PATIENCE).unwrap();
    writer
}

/// The first answer to what was offered.
fn answer(writer: &mut AmqpWriter) -> Outcome {
    let mut delivery_reports = Vec::new();
    within_patience("the broker answers", || {
        writer.delivery_reports(&mut delivery_reports).unwrap();
        delivery_reports
            .pop()
            .map(|confirmation| confirmation.outcome)
    })
}

/// A queue that is bound later takes the chunk: until then the owner keeps it.
#[test]
fn unroutable_chunk_breaks_the_connection_and_is_neither_confirmed_nor_refused() {
    let node = shared_node();
    let rest = format!("?exchange={}&routing_key=k", fresh_name("nowhere"));
    let mut writer = opened(&node.uri(&rest));
    let chunk = ChunkSource::new(1).next(0, 100);
    writer.offer(chunk.clone()).unwrap();
    let mut delivery_reports = Vec::new();
    let error = within_patience("the writer breaks", || {
        writer.delivery_reports(&mut delivery_reports).err()
    });
    assert!(delivery_reports.is_empty(), "{delivery_reports:?}");
    assert!(error.is_retryable(), "{error}");
    assert!(error.message.contains("NO_ROUTE"), "{error}");
    assert_eq!(writer.counts().returned, 1);
    declared(&node.uri(&format!("{rest}&queue={}", fresh_name("bound"))));
    writer.reopen(Instant::now() + PATIENCE).unwrap();
    writer.offer(chunk).unwrap();
    assert!(matches!(answer(&mut writer), Outcome::Confirmed));
}

#[test]
fn exchange_leads_to_the_queue_that_is_bound_to_it() {
    let node = shared_node();
    let (exchange, queue) = (fresh_name("exchange"), fresh_name("queue"));
    let read_from =
        format!("?exchange={exchange}&exchange_type=topic&routing_key=a.*&queue={queue}");
    declared(&node.uri(&read_from));
    let mut tap = Tap::new(reader(&node.uri(&read_from)));
    let write_to = format!("?exchange={exchange}&exchange_type=topic&routing_key=a.b");
    let mut pump = Pump::open(writer(&node.uri(&write_to)));
    pump.push(ChunkSource::new(1).take(50));
    drive_pair("all arrives", &mut pump, &mut tap, |pump, tap| {
        pump.is_done() && tap.distinct() == 50
    });
    assert_eq!(pump.confirmed(), 50);
}

/// Two producers agree: a lane's queue has the chunks of that lane of both.
#[test]
fn each_lane_goes_to_its_queue_whoever_the_producer_is() {
    let node = shared_node();
    let names = |exchange: &str| format!("?queue={}&lane_queues=3{exchange}", fresh_name("lanes"));
    let bound = format!(
        "&exchange={}&exchange_type=topic&routing_key=k",
        fresh_name("lanes")
    );
    for rest in [names(""), names(&bound)] {
        for producer in 1..=2 {
            let mut pump = Pump::open(writer(&node.uri(&rest)));
            let mut source = ChunkSource::new(producer);
            pump.push((0..12).map(|at| source.next(at % 6, 64)));
            within_patience("all is confirmed", || {
                pump.step();
                pump.is_done().then_some(())
            });
        }
        let (queue, _) = rest.split_once('&').unwrap();
        for lane in 0..3 {
            let mut tap = Tap::new(reader(&node.uri(&format!("{queue}.{lane}"))));
            within_patience("it has its chunks", || {
                tap.poll(Duration::from_millis(20));
                (tap.distinct() == 8).then_some(())
            });
            let lanes = tap.received().iter().map(|label| label.lane % 3);
            assert!(
                lanes.into_iter().all(|of| of == lane),
                "{:?}",
                tap.received()
            );
            tap.assert_ordered();
        }
        let error = AmqpReader::new(config(&node.uri(&rest))).unwrap_err();
        assert!(error.message.contains(".0"), "{error}");
    }
}

#[test]
fn nacked_chunk_is_refused_and_may_be_tried_again() {
    let node = shared_node();
    let queue = fresh_name("full");
    let uri = node.uri(&format!("?queue={queue}&queue_type=classic"));
    declared(&uri);
    let definition = r#"{"max-length":1,"overflow":"reject-publish"}"#;
    node.control(&["set_policy", &queue, &format!("^{queue}$"), definition])
        .unwrap();
    let mut writer = opened(&uri);
    let mut source = ChunkSource::new(1);
    let error = within_patience("a full queue refuses", || {
        writer.offer(source.next(0, 100)).unwrap();
        match answer(&mut writer) {
            Outcome::Confirmed | Outcome::Spooled => None,
            Outcome::Refused(error) => Some(error),
        }
    });
    assert!(error.is_retryable(), "{error}");
    assert_eq!(writer.counts().nacked, 1);
}

#[test]
fn connection_on_which_everything_is_refused_is_given_up() {
    let node = shared_node();
    let uri = node.uri(&format!("?queue={}&max_length=1", fresh_name("refusing")));
    let mut writer = opened(&uri);
    let mut source = ChunkSource::new(1);
    let error = within_patience("the writer breaks", || {
        writer.offer(source.next(0, 100)).ok();
        writer.delivery_reports(&mut Vec::new()).err()
    });
    assert!(error.is_retryable(), "{error}");
    assert!(error.message.contains("refused everything"), "{error}");
    writer.reopen(Instant::now() + PATIENCE).unwrap();
    assert_eq!(writer.counts().connections, 2);
}

#[test]
fn limit_of_the_broker_is_learnt_and_what_is_above_it_is_handed_back() {
    let node = shared_node();
    let uri = node.uri(&format!("?queue={}", fresh_name("large")));
    let mut writer = opened(&uri);
    let mut source = ChunkSource::new(1);
    let large = source.next(0, RABBITMQ_MAX_MESSAGE_BYTES + 1);
    writer.offer(large.clone()).unwrap();
    let error = within_patience("the broker closes the channel", || {
        writer.delivery_reports(&mut Vec::new()).err()
    });
    assert!(error.is_retryable(), "{error}");
    writer.reopen(Instant::now() + PATIENCE).unwrap();
    let Err(Rejected {
        chunk,
        reason: RejectReason::TooLarge { max_chunk_bytes },
    }) = writer.offer(large)
    else {
        panic!("a chunk above the limit of the broker was taken again");
    };
    assert_eq!(max_chunk_bytes, RABBITMQ_MAX_MESSAGE_BYTES);
    assert_eq!(chunk.ticket, 0);
    writer
        .offer(source.next(0, RABBITMQ_MAX_MESSAGE_BYTES))
        .unwrap();
    assert!(matches!(answer(&mut writer), Outcome::Confirmed));
}

#[test]
fn wrong_password_is_final_and_not_shown() {
    let node = shared_node();
    let address = node.address();
    let mut writer = writer(&format!("amqp://guest:s3cr3t-w0rd@{address}?queue=q"));
    let error = writer.reopen(Instant::now() + PATIENCE).unwrap_err();
    assert_eq!(error.class, RetryClass::Final);
    let shown = format!("{error} {error:?} {writer:?}");
    assert!(shown.contains("ACCESS_REFUSED"), "{shown}");
    assert!(!shown.contains("s3cr3t-w0rd"), "{shown}");
}

#[test]
fn queue_that_is_another_one_is_a_final_error() {
    let node = shared_node();
    let queue = fresh_name("kinds");
    declared(&node.uri(&format!("?queue={queue}&queue_type=classic")));
    let mut writer = writer(&node.uri(&format!("?queue={queue}&queue_type=quorum")));
    let error = writer.reopen(Instant::now() + PATIENCE).unwrap_err();
    assert_eq!(error.class, RetryClass::Final);
    assert!(error.message.contains("x-queue-type"), "{error}");
}

#[test]
fn every_kind_of_queue_is_written_to() {
    let node = shared_node();
    for kind in ["classic", "quorum", "stream"] {
        let queue = fresh_name(kind);
        let mut writer = opened(&node.uri(&format!("?queue={queue}&queue_type={kind}")));
        writer.offer(ChunkSource::new(1).next(0, 100)).unwrap();
        assert!(matches!(answer(&mut writer), Outcome::Confirmed), "{kind}");
        let listed = node
            .control(&["list_queues", "--silent", "name", "type", "durable"])
            .unwrap();
        let line = listed.lines().find(|line| line.starts_with(&queue));
        let line = line.unwrap_or_else(|| panic!("{queue} is not listed: {listed}"));
        assert!(line.contains(kind) && line.ends_with("true"), "{line}");
    }
}

#[test]
fn threads_end_with_their_connections() {
    let node = shared_node();
    let uri = node.uri(&format!("?queue={}", fresh_name("threads")));
    let mut writer = writer(&uri);
    for _ in 0..10 {
        writer.reopen(Instant::now() + PATIENCE).unwrap();
    }
    drop(reader(&uri));
    writer.close(Instant::now() + PATIENCE);
    within_patience("all threads end", || {
        let tasks = std::fs::read_dir("/proc/self/task").unwrap();
        let names =
            tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok());
        let ours = ["async-compat", "baler-amqp", "lapin"];
        let left = names.filter(|name| ours.iter().any(|ours| name.starts_with(ours)));
        (left.count() == 0).then_some(())
    });
}

/// The broker blocks publishers while it is short of memory: a node of its own.
#[test]
fn blocked_connection_is_a_full_window_and_counted() {
    let node = RabbitMqNode::start().unwrap();
    let mut writer = opened(&node.uri("?queue=blocked"));
    let mut source = ChunkSource::new(1);
    node.set_memory_alarm(true).unwrap();
    // It blocks the connection at its next publish.
    writer.offer(source.next(0, 100)).unwrap();
    within_patience("the connection is blocked", || {
        writer.counts().is_blocked.then_some(())
    });
    let Err(Rejected {
        chunk,
        reason: RejectReason::Full,
    }) = writer.offer(source.next(0, 100))
    else {
        panic!("a blocked connection took a chunk");
    };
    assert!(writer.stats().blocked);
    node.set_memory_alarm(false).unwrap();
    within_patience("it is unblocked", || {
        (!writer.counts().is_blocked).then_some(())
    });
    writer.offer(chunk).unwrap();
    within_patience("both are confirmed", || {
        writer.delivery_reports(&mut Vec::new()).unwrap();
        (writer.counts().confirmed == 2).then_some(())
    });
    assert_eq!(writer.counts().blocked, 1);
    let report = writer.close(Instant::now() + Duration::from_secs(5));
    assert!(
        report.error.is_none() && report.unconfirmed.is_empty(),
        "{report:?}"
    );
}
