//! The trace of a record determines its lane; each lane has its own numbers, order and end.

use std::collections::{BTreeMap, BTreeSet};
use std::thread;
use std::time::Duration;

use baler_common::container::LossReason;
use baler_common::record::{Record, read};
use baler_connector_kieker::container;
use baler_monitoring::{Overflow, StartError};

use super::support::{Medium, Mode, PATIENCE, Received, await_that, beat, plain};

/// A record with a trace.
#[derive(Debug, Record)]
#[record(name = "test.Step")]
struct Step {
    name: String,
    trace_id: u64,
    number: u32,
}

fn step(trace_id: u64, number: u32) -> Step {
    Step {
        name: format!("step of {trace_id}"),
        trace_id,
        number,
    }
}

#[test]
fn trace_stays_in_one_lane_in_order_and_every_lane_ends() {
    let medium = Medium::new(Mode::Prompt);
    let controller = plain(medium.writer(8))
        .lanes(4)
        .chunk_records(10)
        .overflow(Overflow::Block)
        .start()
        .unwrap();
    let threads: Vec<_> = (0..4_u64)
        .map(|thread| {
            let controller = controller.clone();
            thread::spawn(move || {
                for number in 0..50 {
                    for trace in (thread..40).step_by(4) {
                        assert!(controller.emit(&step(trace, number)));
                    }
                }
            })
        })
        .collect();
    threads
        .into_iter()
        .for_each(|thread| thread.join().unwrap());
    let report = controller.shutdown(PATIENCE);
    assert!(report.on_time && report.adds_up(), "{report}");

    let mut lanes_of: BTreeMap<u64, BTreeSet<u32>> = BTreeMap::new();
    let mut next: BTreeMap<u64, u32> = BTreeMap::new();
    let mut sequences: BTreeMap<u32, u64> = BTreeMap::new();
    let mut ended = BTreeSet::new();
    let mut decoder = container::decoder();
    for chunk in medium.chunks() {
        let decoded = decoder.decode(&chunk.bytes).unwrap();
        let header = decoded.summary.header.unwrap();
        let lane = header.identity.lane;
        assert_eq!(chunk.meta.identity, header.identity);
        let sequence = sequences.entry(lane).or_default();
        assert_eq!(header.identity.sequence, *sequence, "of lane {lane}");
        *sequence += 1;
        assert!(!ended.contains(&lane), "lane {lane} went on after its end");
        if header.last_of_epoch {
            ended.insert(lane);
        }
        for record in decoded.batch.records() {
            let step: Step = read(record.fields()).unwrap();
            lanes_of.entry(step.trace_id).or_default().insert(lane);
            let next = next.entry(step.trace_id).or_default();
            assert_eq!(step.number, *next, "of trace {}", step.trace_id);
            *next += 1;
        }
    }
    assert_eq!(lanes_of.len(), 40);
    assert!(lanes_of.values().all(|lanes| lanes.len() == 1));
    assert!(next.values().all(|number| *number == 50));
    assert_eq!(sequences.len(), 4, "forty traces reach every lane");
    assert_eq!(ended.len(), 4);
}

#[test]
fn losses_of_one_lane_stand_in_the_last_chunk_of_every_lane() {
    let medium = Medium::new(Mode::Refusing);
    let controller = plain(medium.writer(8))
        .lanes(3)
        .chunk_records(5)
        .start()
        .unwrap();
    for trace in 0..30 {
        controller.emit(&step(trace, 0));
    }
    controller.flush(PATIENCE).unwrap_err();
    medium.set_mode(Mode::Prompt);
    let report = controller.shutdown(PATIENCE);
    assert!(report.adds_up(), "{report}");
    assert_eq!(report.dropped().get(LossReason::Refused), 30, "{report}");
    let headers = Received::of(&medium.chunks()).headers;
    let last: Vec<_> = headers.iter().filter(|it| it.last_of_epoch).collect();
    assert_eq!(last.len(), 3);
    for header in last {
        assert_eq!(&header.losses, report.dropped());
        assert!(
            !header.lost_chunks.is_empty(),
            "of lane {}",
            header.identity.lane
        );
    }
}

#[test]
fn flush_and_wait_time_close_the_chunks_of_all_lanes() {
    let medium = Medium::new(Mode::Prompt);
    let controller = plain(medium.writer(8))
        .lanes(3)
        .wait_time(Duration::from_secs(60))
        .start()
        .unwrap();
    (0..30).for_each(|trace| assert!(controller.emit(&step(trace, 0))));
    controller.flush(PATIENCE).unwrap();
    assert_eq!(controller.stats().delivered, 30);
    assert_eq!(medium.chunks().len(), 3);
    controller.shutdown(PATIENCE);

    let medium = Medium::new(Mode::Prompt);
    let controller = plain(medium.writer(8))
        .lanes(3)
        .wait_time(Duration::from_millis(20))
        .start()
        .unwrap();
    (0..30).for_each(|trace| assert!(controller.emit(&step(trace, 0))));
    medium.await_chunks(3);
    let report = controller.shutdown(PATIENCE);
    assert_eq!(report.stats.closed_by.age, 3, "{report}");
}

#[test]
fn records_without_a_trace_leave_the_other_lanes_silent() {
    let medium = Medium::new(Mode::Prompt);
    let controller = plain(medium.writer(8)).lanes(8).start().unwrap();
    (0..10).for_each(|number| assert!(controller.emit(&beat(0, number))));
    controller.shutdown(PATIENCE);
    let headers = Received::of(&medium.chunks()).headers;
    assert!(headers.iter().all(|header| header.identity.lane == 0));
    assert!(headers.last().unwrap().last_of_epoch);
}

#[test]
fn number_of_lanes_has_bounds() {
    for lanes in [0, 100_000] {
        let error = plain(Medium::new(Mode::Prompt).writer(1))
            .lanes(lanes)
            .start();
        let error = error.unwrap_err();
        assert!(error.to_string().starts_with("lanes is"), "{error}");
    }
}

/// A thousand characters that no encoding makes much smaller.
fn text_unlike_others(number: u64) -> String {
    let mut state = number;
    let draws = std::iter::repeat_with(|| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        char::from(b'!' + u8::try_from((state >> 40) % 90).unwrap())
    });
    draws.take(1_000).collect()
}

#[test]
fn one_budget_is_divided_among_queues_batches_and_chunks() {
    let start = |budget: usize| {
        plain(Medium::new(Mode::Held).writer(64))
            .memory(budget)
            .overflow(Overflow::DropNewest)
            .wait_time(Duration::from_millis(5))
    };
    let controller = start(8 << 20).start().unwrap();
    let mut number = 0;
    let held = || {
        let stats = controller.stats();
        (
            stats.dropped.total(),
            stats.queue_bytes + stats.outbox.unconfirmed_bytes,
        )
    };
    // The medium confirms nothing. Everything fills up, then records are dropped, even while the
    // collector runs.
    await_that("a budget that is used", || {
        for _ in 0..1_000 {
            let mut record = beat(0, number);
            record.text = text_unlike_others(number);
            controller.emit(&record);
            number += 1;
        }
        let (dropped, held) = held();
        assert!(held <= 8 << 20, "{held}");
        dropped >= 1_000 && held > 4 << 20
    });
    controller.shutdown(Duration::from_millis(10));

    let error = start(1 << 20).start().unwrap_err();
    assert!(matches!(error, StartError::OverBudget { .. }), "{error}");
    let error = start(8 << 20).queue_bytes(16 << 20).start().unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("memory") && text.contains("queue_bytes"),
        "{text}"
    );
}
