//! Looking at a topic beside the group that consumes it.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::{Duration, Instant};

use baler_common::transport::{Browse, Chunk, ChunkReader, Received, TransportError, Verdict};
use baler_connector_kafka::{KafkaBrowser, RequestFault, RequestKind};
use baler_connector_testkit::{
    ChunkSource, PATIENCE, Pump, Tap, TestMedium, drive, drive_pair, read_label, within_patience,
};

use crate::support::Kafka;

/// Chunks of eight lanes, which are spread over the partitions.
fn chunks(source: &mut ChunkSource, number: u32) -> Vec<Chunk> {
    (0..number).map(|at| source.next(at % 8, 64)).collect()
}

fn browser(kafka: &Kafka, browse: Browse) -> Box<KafkaBrowser> {
    // The group at work, of which it must not become a member.
    Box::new(KafkaBrowser::open(kafka.config(), browse).unwrap())
}

/// Writes chunks until they are confirmed.
fn write(pump: &mut Pump, chunks: Vec<Chunk>) {
    pump.push(chunks);
    within_patience("all is confirmed", || {
        pump.step();
        pump.is_done().then_some(())
    });
}

/// How many chunks a browser shows until its end. They stay unsettled.
fn until_end(browser: &mut dyn ChunkReader) -> usize {
    let mut shown = 0;
    within_patience("its end", || {
        match browser.receive(Instant::now() + Duration::from_millis(20)) {
            Ok(Received::Chunk(_)) => shown += 1,
            Ok(Received::End) => return Some(()),
            Ok(Received::Idle) => {}
            other => panic!("{other:?}"),
        }
        None
    });
    shown
}

/// A browser that joined a group, of whatever name, would get nothing: joining fails for everybody.
#[test]
fn group_at_work_keeps_its_partitions_and_its_commits_while_others_look() {
    let kafka = Kafka::fresh();
    let mut source = ChunkSource::new(1);
    let mut pump = Pump::open(kafka.writer_with(kafka.config()));
    let mut member = Tap::new(kafka.reader_with(kafka.config()));
    pump.push(chunks(&mut source, 40));
    drive_pair(
        "the group has 40",
        &mut pump,
        &mut member,
        |pump, member| pump.is_done() && member.distinct() == 40,
    );
    let (_, report) = member.close(Instant::now() + PATIENCE);
    assert!(report.error.is_none(), "{report:?}");
    let mut member = Tap::holding(kafka.reader_with(kafka.config()), 8);
    within_patience("the group has its partitions again", || {
        member.poll(Duration::from_millis(10));
        (member.reader().stats().lag.len() == 4).then_some(())
    });
    let nobody_joins = [RequestFault::GroupAuthorizationFailed; 1000];
    let join = RequestKind::JoinGroup;
    kafka.cluster.fail_requests(join, &nobody_joins).unwrap();

    let mut now = browser(&kafka, Browse::UntilNow);
    assert_eq!(until_end(now.as_mut()), 40);
    let mut late = Tap::new(browser(&kafka, Browse::FromNow));
    let mut whole = Tap::new(browser(&kafka, Browse::FromOldest));
    within_patience("both look", || {
        late.poll(Duration::from_millis(10));
        whole.poll(Duration::from_millis(10));
        // Until it has begun, it does not see what comes.
        write(&mut pump, chunks(&mut source, 8));
        (late.distinct() > 0).then_some(())
    });
    let sent = pump.confirmed();
    let mut taps = [late, whole];
    drive("the other one sees all", &mut [], &mut taps, |_, taps| {
        taps[1].distinct() == sent
    });
    assert!(taps[0].distinct() < sent);
    for tap in taps {
        let (_, report) = tap.close(Instant::now() + PATIENCE);
        assert!(report.error.is_none(), "{report:?}");
    }
    assert_eq!(member.reader().stats().rebalances, 0);
    // Its commits are where they were: it gets what came since, and only that.
    member.set_demand(1 << 20);
    member.acknowledge();
    within_patience("the group gets the rest", || {
        member.poll(Duration::from_millis(10));
        (member.distinct() == sent - 40).then_some(())
    });
    assert_eq!(member.received().len(), sent - 40);
}

#[test]
fn browser_ends_where_the_topic_ended_when_it_began() {
    let kafka = Kafka::fresh();
    let mut source = ChunkSource::new(1);
    let mut pump = Pump::open(kafka.writer_with(kafka.config()));
    // One partition has nothing.
    assert_eq!(until_end(browser(&kafka, Browse::UntilNow).as_mut()), 0);
    write(&mut pump, source.take(30));
    let mut browser = browser(&kafka, Browse::UntilNow);
    browser.set_demand(10);
    let mut held = Vec::new();
    within_patience("it shows ten", || {
        if let Received::Chunk(delivery) = browser.receive(Instant::now()).unwrap() {
            held.push(delivery);
        }
        (held.len() == 10).then_some(())
    });
    let sequences: Vec<_> = held
        .iter()
        .map(|it| read_label(&it.bytes).sequence)
        .collect();
    assert_eq!(sequences, (0..10).collect::<Vec<_>>(), "the oldest first");
    let idle = browser.receive(Instant::now() + Duration::from_millis(50));
    assert!(matches!(idle, Ok(Received::Idle)), "{idle:?}");
    // What comes meanwhile is not shown, however long the look lasts.
    write(&mut pump, source.take(30));
    for delivery in held {
        browser.settle(delivery.token, Verdict::Ack).unwrap();
    }
    browser.set_demand(1 << 20);
    assert_eq!(until_end(browser.as_mut()), 20);
}

#[test]
fn ranges_of_offsets_are_read_exactly() {
    let kafka = Kafka::fresh();
    let mut source = ChunkSource::new(1);
    let mut pump = Pump::open(kafka.writer_with(kafka.config()));
    write(&mut pump, chunks(&mut source, 80));
    let mut all: BTreeMap<i32, Vec<u64>> = BTreeMap::new();
    for (partition, offset) in places(browser(&kafka, Browse::UntilNow).as_mut()) {
        all.entry(partition).or_default().push(offset);
    }
    let (&partition, offsets) = all.iter().max_by_key(|it| it.1.len()).unwrap();
    let count = i64::try_from(offsets.len()).unwrap();
    assert!(count >= 4, "{all:?}");
    let read = |range: Range<i64>| {
        let ranges = BTreeMap::from([(partition, range)]);
        KafkaBrowser::open_ranges(kafka.config(), ranges).map(Box::new)
    };
    let mut middle = read(1..count - 1).unwrap();
    let expected: Vec<_> = (1..count - 1)
        .map(|it| (partition, it.unsigned_abs()))
        .collect();
    assert_eq!(places(middle.as_mut()), expected);
    assert_eq!(until_end(read(2..2).unwrap().as_mut()), 0);
    assert_eq!(until_end(read(0..count).unwrap().as_mut()), offsets.len());
    let beyond = failure(read(1..count + 1).unwrap().as_mut());
    assert!(
        beyond
            .message
            .contains(&format!("not all of 1 to {}", count + 1)),
        "{beyond}"
    );
    let ranges = BTreeMap::from([(99, 0..1)]);
    let mut nowhere = Box::new(KafkaBrowser::open_ranges(kafka.config(), ranges).unwrap());
    let nowhere = failure(nowhere.as_mut());
    assert!(nowhere.message.contains("has no partition 99"), "{nowhere}");
}

/// Partition and offset of each chunk that a browser shows.
fn places(browser: &mut dyn ChunkReader) -> Vec<(i32, u64)> {
    let mut places = Vec::new();
    within_patience("its end", || {
        match browser.receive(Instant::now() + Duration::from_millis(20)) {
            Ok(Received::Chunk(it)) => {
                let partition = it
                    .origin
                    .lane
                    .rsplit('/')
                    .next()
                    .and_then(|it| it.parse().ok());
                places.push((partition.unwrap(), it.origin.position));
            }
            Ok(Received::End) => return Some(()),
            Ok(Received::Idle) => {}
            other => panic!("{other:?}"),
        }
        None
    });
    places
}

/// The final error of a browser.
fn failure(browser: &mut dyn ChunkReader) -> TransportError {
    within_patience("its error", || {
        let received = browser.receive(Instant::now() + Duration::from_millis(20));
        received.err().filter(|error| !error.is_retryable())
    })
}

#[test]
fn topic_that_is_not_there_is_named() {
    let kafka = Kafka::fresh();
    let unknown = Some(RequestFault::UnknownTopic);
    kafka.cluster.fail_topic("chunks", unknown).unwrap();
    let error = |browse| {
        let mut browser = browser(&kafka, browse);
        browser.receive(Instant::now() + PATIENCE).unwrap_err()
    };
    let now = error(Browse::UntilNow);
    assert!(!now.is_retryable(), "{now}");
    assert!(now.message.contains("no topic chunks"), "{now}");
    assert!(error(Browse::FromNow).is_retryable(), "it may come to be");
    let forbidden = Some(RequestFault::TopicAuthorizationFailed);
    kafka.cluster.fail_topic("chunks", forbidden).unwrap();
    let refused = error(Browse::FromNow);
    assert!(!refused.is_retryable(), "{refused}");
    assert!(!refused.message.contains("no topic"), "{refused}");
}
