//! What an operator, or a limit that one set, does to connections and queues under load.

use std::collections::HashSet;
use std::slice;
use std::sync::Arc;
use std::time::{Duration, Instant};

use baler_common::transport::{
    ChunkReader, ChunkWriter, End, Outbox, OutboxSettings, RetryClass, Verdict,
};
use baler_connector_testkit::faults::RabbitMqNode;
use baler_connector_testkit::{
    ChunkSource, Notification, PATIENCE, Pump, Tap, drive, read_label, within_patience,
};

use crate::support::{declared, fresh_name, reader, shared_node, writer};
use crate::traffic::{Order, Traffic};

/// One node for what concerns all of its connections.
#[test]
fn operator_closes_connections_and_memory_runs_short_under_load() {
    let node = RabbitMqNode::start().unwrap();
    let mut traffic = Traffic::new(&node.uri("?queue=q&single_active=yes"));
    traffic.confirm(200);
    for round in 1..=2 {
        node.close_connections().unwrap();
        traffic.until("both connect again", |traffic| {
            traffic.broken() >= round && traffic.reconnects() >= round
        });
        traffic.confirm(200);
    }
    node.set_memory_alarm(true).unwrap();
    traffic.until("it is blocked", |traffic| traffic.is_blocked());
    let (broken, confirmed) = (traffic.broken(), traffic.confirmed());
    for _ in 0..20 {
        traffic.step();
    }
    assert!(
        traffic.confirmed() <= confirmed + 64,
        "it goes on when it is blocked"
    );
    node.set_memory_alarm(false).unwrap();
    traffic.until("it is not blocked", |traffic| !traffic.is_blocked());
    traffic.confirm(200);
    assert_eq!(traffic.broken(), broken, "being blocked breaks nothing");
    traffic.end();
    slow_consumer_loses_its_channel(&node);
}

/// The broker takes chunks back that are held for too long: they come again.
fn slow_consumer_loses_its_channel(node: &RabbitMqNode) {
    let patience = "application:set_env(rabbit, consumer_timeout, 1000), \
                    application:set_env(rabbit, channel_tick_interval, 500).";
    node.control(&["eval", patience]).unwrap();
    let uri = node.uri("?queue=slow&queue_type=classic");
    let mut traffic = Traffic::new(&uri);
    traffic.confirm(10);
    traffic.end();
    let mut pump = Pump::open(writer(&uri));
    pump.push(ChunkSource::new(2).take(3));
    let mut taps = [Tap::holding(reader(&uri), 3)];
    drive(
        "it holds them",
        slice::from_mut(&mut pump),
        &mut taps,
        |_, taps| taps[0].unsettled().len() == 3,
    );
    let error = within_patience("the broker closes the channel", || {
        let reader = taps[0].reader();
        reader
            .receive(Instant::now() + Duration::from_millis(100))
            .err()
    });
    assert!(error.is_retryable(), "{error}");
    assert!(error.message.contains("timeout"), "{error}");
    // What it still holds is stale now, and comes again.
    taps[0].acknowledge();
    drive("they come again", &mut [], &mut taps, |_, taps| {
        taps[0].received().len() == 6
    });
    assert_eq!(taps[0].distinct(), 3);
}

#[test]
fn queue_deleted_under_load_is_declared_again() {
    let node = shared_node();
    let queue = fresh_name("deleted");
    let uri = node.uri(&format!("?queue={queue}"));
    declared(&uri);
    let mut pump = Pump::open(writer(&uri));
    let mut source = ChunkSource::new(1);
    let mut taps = [Tap::new(reader(&uri))];
    pump.push(source.take(100));
    drive(
        "some pass",
        slice::from_mut(&mut pump),
        &mut taps,
        |_, taps| taps[0].distinct() == 100,
    );
    pump.push(source.take(50));
    node.control(&["delete_queue", &queue]).unwrap();
    // What was in the queue is gone with it, by the operator's choice. Whichever
    // end notices first declares it anew.
    within_patience("it reads again", || {
        taps[0].poll(Duration::from_millis(20));
        (taps[0].reader().stats().reconnects >= 1).then_some(())
    });
    let before = taps[0].distinct();
    drive(
        "a fresh chunk passes",
        slice::from_mut(&mut pump),
        &mut taps,
        |pumps, _| pumps[0].is_done(),
    );
    pump.push(source.take(10));
    drive(
        "a fresh chunk passes",
        slice::from_mut(&mut pump),
        &mut taps,
        |_, taps| taps[0].distinct() >= before + 10,
    );
}

/// The chunks that the deleted queue held are gone with it. Everything after that is confirmed and
/// arrives, although nobody but the writer declares the queue again.
#[test]
fn queue_deleted_while_writing_takes_what_follows() {
    let node = shared_node();
    let queue = fresh_name("deleted");
    let uri = node.uri(&format!("?queue={queue}"));
    let bell = Arc::<Notification>::default();
    let mut outbox = Outbox::new(writer(&uri), OutboxSettings::default(), bell);
    let mut source = ChunkSource::new(1);
    let mut confirm = |chunks| {
        let chunks = source.take(chunks);
        let labels: HashSet<_> = chunks.iter().map(|it| read_label(&it.bytes)).collect();
        for chunk in chunks {
            outbox.push(chunk, Instant::now());
        }
        let mut fates = Vec::new();
        within_patience("everything is confirmed", || {
            outbox.drive(Instant::now(), None, &mut fates);
            outbox.is_empty().then_some(())
        });
        for fate in fates {
            assert!(matches!(fate.end, End::Confirmed), "{:?}", fate.end);
        }
        (labels, outbox.stats().broken)
    };
    confirm(100);
    node.control(&["delete_queue", &queue]).unwrap();
    let (labels, broken) = confirm(200);
    assert!(broken >= 1);
    let mut taps = [Tap::new(reader(&uri))];
    drive("all arrives", &mut [], &mut taps, |_, taps| {
        labels
            .iter()
            .all(|label| taps[0].received().contains(label))
    });
}

#[test]
fn full_queue_refuses_and_loses_nothing() {
    let node = shared_node();
    for queue_type in ["classic", "quorum"] {
        let queue = fresh_name("bounded");
        let uri = node.uri(&format!(
            "?queue={queue}&queue_type={queue_type}&max_length=20&prefetch=4"
        ));
        // What is refused is tried again soon, and not so much that most of it is refused again.
        let mut settings = OutboxSettings::default();
        settings.max_chunks = 64;
        settings.retry.max_delay = Duration::from_millis(50);
        let mut traffic = Traffic::with(settings, &uri, &uri);
        traffic.order = Order::None;
        traffic.tap.set_demand(0);
        // Until then it may have no leader.
        traffic.confirm(20);
        let mut publish_for = |time| {
            let start = Instant::now();
            while start.elapsed() < time {
                traffic.step();
            }
            traffic.confirmed()
        };
        // Publishing is stopped a little late where the queue is replicated, by so much more as the
        // machine is fast.
        let taken = publish_for(Duration::from_secs(1));
        let later = publish_for(Duration::from_millis(500));
        assert!(later < taken + 20, "{later} after {taken}: it is not full");
        traffic.tap.set_demand(1 << 20);
        traffic.confirm(300);
        traffic.end();
    }
}

#[test]
fn limits_are_declared_and_another_limit_is_a_final_error() {
    let node = shared_node();
    let queue = fresh_name("limits");
    let rest = format!(
        "?queue={queue}&max_length=7&overflow=drop-head&delivery_limit=2&message_ttl=1h&replicas=1"
    );
    declared(&node.uri(&rest));
    let listed = node
        .control(&["list_queues", "--silent", "name", "arguments"])
        .unwrap();
    let line = listed
        .lines()
        .find(|line| line.starts_with(&queue))
        .unwrap();
    for argument in [
        "x-max-length",
        "drop-head",
        "x-delivery-limit",
        "x-message-ttl",
        "x-quorum-initial-group-size",
    ] {
        assert!(line.contains(argument), "{argument}: {line}");
    }
    let mut writer = writer(&node.uri(&format!("?queue={queue}&max_length=8")));
    let error = writer.reopen(Instant::now() + PATIENCE).unwrap_err();
    assert_eq!(error.class, RetryClass::Final);
    assert!(error.message.contains("x-max-length"), "{error}");
    assert!(error.message.contains("declare=false"), "{error}");
}

/// As Kieker's writer declares a queue, and many others do: without a type it is a classic one.
#[test]
fn setting_that_suits_a_queue_or_exchange_that_is_there_is_named() {
    let node = shared_node();
    let queue = fresh_name("classic");
    let untyped = format!(
        "{{resource, <<\"/\">>, queue, <<\"{queue}\">>}}, true, false, [], none, <<\"test\">>"
    );
    node.control(&["eval", &format!("rabbit_amqqueue:declare({untyped}).")])
        .unwrap();
    let refused = |rest: &str| {
        let mut writer = writer(&node.uri(rest));
        let error = writer.reopen(Instant::now() + PATIENCE).unwrap_err();
        assert_eq!(error.class, RetryClass::Final, "{error}");
        error.message.into_string()
    };
    let message = refused(&format!("?queue={queue}"));
    assert!(message.contains("add queue_type=classic"), "{message}");
    assert!(message.contains("declare=false"), "{message}");
    declared(&node.uri(&format!("?queue={queue}&queue_type=classic")));
    declared(&node.uri(&format!("?queue={queue}&declare=false")));

    let stream = fresh_name("stream");
    declared(&node.uri(&format!("?queue={stream}&queue_type=stream")));
    let message = refused(&format!("?queue={stream}"));
    assert!(message.contains("add queue_type=stream"), "{message}");

    let exchange = fresh_name("fanout");
    declared(&node.uri(&format!("?exchange={exchange}&exchange_type=fanout")));
    let message = refused(&format!("?exchange={exchange}"));
    assert!(message.contains("add exchange_type=fanout"), "{message}");
}

#[test]
fn chunk_above_the_delivery_limit_goes_where_dead_letters_go() {
    let node = shared_node();
    let (queue, dead) = (fresh_name("poison"), fresh_name("dead"));
    let uri = node.uri(&format!(
        "?queue={queue}&delivery_limit=2&dead_letter_queue={dead}"
    ));
    declared(&uri);
    let mut pump = Pump::open(writer(&uri));
    pump.push(ChunkSource::new(1).take(1));
    let mut taps = [
        Tap::holding(reader(&uri), 1),
        Tap::new(reader(&node.uri(&format!("?queue={dead}")))),
    ];
    for _ in 0..3 {
        drive(
            "it comes",
            slice::from_mut(&mut pump),
            &mut taps,
            |_, taps| taps[0].unsettled().len() == 1,
        );
        let label = taps[0].unsettled()[0];
        taps[0].settle(label, Verdict::Retry);
    }
    drive("it is put aside", &mut [], &mut taps, |_, taps| {
        taps[1].distinct() == 1
    });
    assert_eq!(taps[0].received().len(), 3);
}

#[test]
fn lag_is_what_waits_and_what_is_held() {
    let node = shared_node();
    for settings in [
        "&lag_interval=50ms",
        "&lag_interval=50ms&queue_type=stream",
        // The broker is asked once, at the beginning.
        "&lag_interval=1h",
    ] {
        let queue = fresh_name("lag");
        let uri = node.uri(&format!("?queue={queue}&prefetch=5{settings}"));
        declared(&uri);
        let mut pump = Pump::open(writer(&uri));
        pump.push(ChunkSource::new(1).take(50));
        drive(
            "all is confirmed",
            slice::from_mut(&mut pump),
            &mut [],
            |pumps, _| pumps[0].is_done(),
        );
        let mut tap = Tap::holding(reader(&uri), 10);
        let lag = |tap: &mut Tap, chunks: u64| {
            within_patience("the lag is told", || {
                tap.poll(Duration::from_millis(10));
                (tap.reader().stats().total_lag() == Some(chunks)).then_some(())
            });
        };
        lag(&mut tap, 50);
        assert_eq!(tap.reader().stats().lag[0].lane, queue.clone().into());
        tap.acknowledge();
        tap.set_demand(1 << 20);
        lag(&mut tap, 0);
        // A chunk on its way is neither in the queue nor held.
        within_patience("all come", || {
            tap.poll(Duration::from_millis(10));
            (tap.distinct() == 50).then_some(())
        });
    }
}

#[test]
fn virtual_host_that_is_missing_is_a_final_error() {
    let node = shared_node();
    let uri = node.uri("/nowhere?queue=q");
    let error = writer(&uri).reopen(Instant::now() + PATIENCE).unwrap_err();
    assert_eq!(error.class, RetryClass::Final, "{error}");
    let error = reader(&uri).receive(Instant::now() + PATIENCE).unwrap_err();
    assert_eq!(error.class, RetryClass::Final, "{error}");
}

#[test]
fn password_comes_from_a_file_that_may_change() {
    let node = shared_node();
    let folder = tempfile::TempDir::new().unwrap();
    let file = folder.path().join("password");
    let queue = fresh_name("password");
    let uri = format!(
        "amqp://guest@{}?queue={queue}&password_file={}",
        node.address(),
        file.display()
    );
    std::fs::write(&file, "wr0ng-s3cret\n").unwrap();
    let mut writer = writer(&uri);
    let error = writer.reopen(Instant::now() + PATIENCE).unwrap_err();
    assert_eq!(error.class, RetryClass::Final);
    let shown = format!("{error} {error:?} {writer:?}");
    assert!(!shown.contains("wr0ng-s3cret"), "{shown}");
    std::fs::write(&file, "guest\n").unwrap();
    writer.reopen(Instant::now() + PATIENCE).unwrap();
}
