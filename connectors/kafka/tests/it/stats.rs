//! What a reader says of its group: lag, rebalances, connections.

use std::time::Duration;

use baler_common::transport::{Chunk, ChunkReader, ReaderStats, Received};
use baler_connector_testkit::{ChunkSource, Pump, Tap, TestMedium, drive_pair, within_patience};

use crate::support::{Kafka, soon};

/// Chunks of eight lanes.
fn chunks(source: &mut ChunkSource, number: u32) -> Vec<Chunk> {
    (0..number).map(|at| source.next(at % 8, 64)).collect()
}

/// Polls until the figures are as they should be.
fn shows(what: &str, tap: &mut Tap, as_it_should: impl Fn(&ReaderStats) -> bool) {
    within_patience(what, || {
        tap.poll(Duration::from_millis(10));
        let stats = tap.reader().stats();
        as_it_should(&stats).then_some(())
    });
}

#[test]
fn lag_counts_what_is_not_settled_and_ends_with_the_last_settlement() {
    let kafka = Kafka::fresh();
    let mut pump = Pump::open(kafka.writer_with(kafka.config()));
    let mut tap = Tap::holding(kafka.reader_with(kafka.config()), 10);
    let mut source = ChunkSource::new(1);
    pump.push(chunks(&mut source, 40));
    drive_pair("ten are held", &mut pump, &mut tap, |pump, tap| {
        pump.is_done() && tap.unsettled().len() == 10
    });
    shows("what is not settled is behind", &mut tap, |stats| {
        stats.total_lag() == Some(40)
    });
    // The reader holds what it may and its partitions are paused: it still learns what comes.
    pump.push(chunks(&mut source, 24));
    within_patience("it is confirmed", || {
        pump.step();
        pump.is_done().then_some(())
    });
    shows("a paused reader falls behind", &mut tap, |stats| {
        stats.total_lag() == Some(64)
    });
    tap.acknowledge();
    tap.set_demand(1000);
    shows("nothing is behind", &mut tap, |stats| {
        stats.total_lag() == Some(0)
    });
    assert_eq!(tap.reader().stats().rebalances, 0, "the first is none");
    let lag = tap.reader().stats().lag;
    let lanes: Vec<_> = lag.iter().map(|lane| &*lane.lane).collect();
    assert_eq!(lanes, ["0", "1", "2", "3"]);
}

#[test]
fn reader_that_comes_late_sees_what_waits_for_it() {
    let kafka = Kafka::fresh();
    let mut pump = Pump::open(kafka.writer_with(kafka.config()));
    pump.push(chunks(&mut ChunkSource::new(1), 32));
    within_patience("all is confirmed", || {
        pump.step();
        pump.is_done().then_some(())
    });
    let mut tap = Tap::holding(kafka.reader_with(kafka.config()), 1);
    shows("all of it waits", &mut tap, |stats| {
        stats.total_lag() == Some(32)
    });
}

/// A partition that is paused before its first fetch has no statistics.
#[test]
fn reader_without_demand_sees_what_waits_for_it() {
    let kafka = Kafka::fresh();
    let mut pump = Pump::open(kafka.writer_with(kafka.config()));
    let mut tap = Tap::new(kafka.reader_with(kafka.config()));
    let mut source = ChunkSource::new(1);
    pump.push(chunks(&mut source, 24));
    drive_pair("it is read", &mut pump, &mut tap, |pump, tap| {
        pump.is_done() && tap.distinct() == 24
    });
    let (_, report) = tap.close(soon());
    assert!(report.error.is_none(), "{report:?}");
    pump.push(chunks(&mut source, 32));
    within_patience("all is confirmed", || {
        pump.step();
        pump.is_done().then_some(())
    });
    let mut tap = Tap::holding(kafka.reader_with(kafka.config()), 0);
    shows("what the group did not settle waits", &mut tap, |stats| {
        stats.lag.len() == 4 && stats.total_lag() == Some(32)
    });
    let mut other = Tap::holding(
        kafka.reader_with(kafka.config_with(&[("group.id", "another")])),
        0,
    );
    shows("all of it waits for a new group", &mut other, |stats| {
        stats.lag.len() == 4 && stats.total_lag() == Some(56)
    });
    assert_eq!((tap.distinct(), other.distinct()), (0, 0));
}

#[test]
fn rebalances_and_connections_are_counted() {
    let kafka = Kafka::fresh();
    let mut first = Tap::new(kafka.reader_with(kafka.config()));
    shows("it has partitions", &mut first, |stats| {
        stats.lag.len() == 4
    });
    let mut second: Box<dyn ChunkReader> = kafka.reader_with(kafka.config());
    assert_eq!(second.stats().connected, Some(false), "nothing was reached");
    second.set_demand(8);
    within_patience("some of them go", || {
        first.poll(Duration::from_millis(5));
        let soon = std::time::Instant::now() + Duration::from_millis(5);
        let assigned = matches!(second.receive(soon), Ok(Received::Assigned { .. }));
        (assigned && first.reader().stats().rebalances > 0).then_some(())
    });
    let before = first.reader().stats().reconnects;
    shows("it is connected", &mut first, |stats| {
        stats.connected == Some(true)
    });
    kafka.cluster.broker_down(1).unwrap();
    shows("it says that nothing is reached", &mut first, |stats| {
        stats.connected == Some(false)
    });
    kafka.cluster.broker_up(1).unwrap();
    shows("it connected again", &mut first, |stats| {
        stats.reconnects > before
    });
}
