//! Several readers of one process: copies and gaps over all of them, failures, the fan-out.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use baler_analysis::sinks::{JsonLines, SharedOutput};
use baler_analysis::workers::{Ended, Group, Worker, Workers, fan_out};
use baler_analysis::{AnalysisError, Parcel, Source, Stage, Step, Stop};
use baler_common::container::ChunkHeader;
use baler_common::transport::{Received, RetryClass, TransportError, Verdict};
use bytes::Bytes;

use crate::support::{Play, Scripted, chunk, encode, identity, keep_all, keep_by, numbered};

fn count(number: usize) -> NonZeroUsize {
    NonZeroUsize::new(number).unwrap()
}

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(5)
}

/// Returns the chunk of a lane with this sequence. Its record contains both: lane * 1000 +
/// sequence.
fn of_lane(lane: u32, sequence: u64) -> Bytes {
    let mut identity = identity(sequence);
    identity.lane = lane;
    let number = i64::from(lane) * 1_000 + i64::try_from(sequence).unwrap();
    encode(&ChunkHeader::new(identity), &[numbered(number)])
}

fn play(sequences: impl IntoIterator<Item = u64>) -> Vec<Play> {
    sequences
        .into_iter()
        .map(|sequence| Play::Chunk(chunk(sequence)))
        .collect()
}

fn run(workers: &Workers, make: impl FnMut(usize) -> Result<Worker, AnalysisError>) -> Ended {
    workers.run(make, || true, soon, |_| {})
}

/// Takes one step after the other until there is a chunk.
fn next(source: &mut Source) -> Parcel {
    let by = soon();
    while Instant::now() < by {
        if let Step::Chunk(parcel) = source.step(by).unwrap() {
            return parcel;
        }
    }
    panic!("no chunk came");
}

#[test]
fn every_worker_settles_what_it_read() {
    let workers = Workers::new(count(4));
    let mut kept = Vec::new();
    let mut verdicts = Vec::new();
    let ended = run(&workers, |number| {
        let lane = u32::try_from(number).unwrap();
        let script = (0..100).map(|sequence| Play::Chunk(of_lane(lane, sequence)));
        let (reader, told) = Scripted::new(script);
        let (stage, numbers) = keep_all();
        kept.push(numbers);
        verdicts.push(told);
        Ok(Worker {
            source: Source::new(reader).with_demand(8),
            stage: Box::new(stage),
        })
    });
    assert!(ended.error.is_none(), "{:?}", ended.error);
    assert_eq!(ended.report.total.acknowledged, 400);
    assert_eq!(ended.report.total.lanes, 4);
    assert_eq!(ended.report.readers.len(), 4);
    for (lane, numbers) in (0..).zip(&kept) {
        let expected: Vec<i64> = (0..100).map(|sequence| lane * 1_000 + sequence).collect();
        assert_eq!(*numbers.lock().unwrap(), expected);
    }
    assert!(verdicts.iter().all(|it| it.lock().unwrap().len() == 100));
}

#[test]
fn a_copy_of_what_another_reader_settled_is_not_processed() {
    let group = Group::new();
    let (first, _) = Scripted::new(play([0, 1]));
    let (second, verdicts) = Scripted::new(play([0, 2]));
    let mut first = Source::new(first).in_group(&group);
    let mut second = Source::new(second).in_group(&group);
    drop(next(&mut first));
    drop(next(&mut first));
    assert!(matches!(first.step(soon()).unwrap(), Step::End));
    let parcel = next(&mut second);
    assert_eq!(parcel.identity().unwrap().sequence, 2);
    drop(parcel);
    assert!(matches!(second.step(soon()).unwrap(), Step::End));
    first.close(soon()).unwrap();
    let report = second.close(soon()).unwrap();
    assert_eq!(report.duplicates_across_readers, 1);
    assert_eq!((report.processed_twice, report.duplicates), (0, 0));
    let acknowledged = verdicts.lock().unwrap();
    assert!(acknowledged.iter().all(|(_, it)| *it == Verdict::Ack) && acknowledged.len() == 2);
    assert_eq!(group.report().total.duplicates_across_readers, 1);
}

#[test]
fn a_copy_that_two_readers_had_in_work_is_counted_as_processed_twice() {
    let group = Group::new();
    let (first, _) = Scripted::new(play([0]));
    let (second, _) = Scripted::new(play([0]));
    let mut first = Source::new(first).in_group(&group);
    let mut second = Source::new(second).in_group(&group);
    let (one, other) = (next(&mut first), next(&mut second));
    drop(one);
    drop(other);
    first.close(soon()).unwrap();
    second.close(soon()).unwrap();
    let total = group.report().total;
    assert_eq!(
        (total.duplicates_across_readers, total.processed_twice),
        (1, 1)
    );
    assert_eq!((total.duplicates, total.acknowledged), (0, 2));
}

#[test]
fn a_gap_of_one_reader_that_another_fills_is_none() {
    let group = Group::new();
    let (even, _) = Scripted::new(play([0, 2, 4, 8]));
    let (odd, _) = Scripted::new(play([1, 3, 5]));
    for reader in [even, odd] {
        let mut source = Source::new(reader).in_group(&group);
        let (mut stage, _) = keep_all();
        source.run(&mut stage, Stop::default(), |_| true).unwrap();
        assert!(!source.close(soon()).unwrap().gaps.is_empty());
    }
    let gaps = group.report().total.gaps;
    let gaps: Vec<_> = gaps
        .iter()
        .map(|it| (it.first_sequence, it.chunks))
        .collect();
    assert_eq!(gaps, [(6, 2)]);
}

#[test]
fn a_chunk_given_back_by_one_reader_is_new_to_another() {
    let group = Group::new();
    let (first, _) = Scripted::new(play([0]));
    let (second, _) = Scripted::new(play([0]));
    let mut first = Source::new(first).in_group(&group);
    let parcel = next(&mut first);
    parcel.fail();
    drop(parcel);
    first.close(soon()).unwrap();
    let mut second = Source::new(second).in_group(&group);
    drop(next(&mut second));
    assert_eq!(second.close(soon()).unwrap().duplicates_across_readers, 0);
}

#[test]
fn one_failing_worker_ends_the_others_which_settle_what_they_processed() {
    let workers = Workers::new(count(3));
    let mut verdicts = Vec::new();
    let ended = run(&workers, |number| {
        let lane = u32::try_from(number).unwrap();
        let script = (0..50).map(|sequence| Play::Chunk(of_lane(lane, sequence)));
        let (reader, told) = Scripted::new(script);
        verdicts.push(told);
        let (stage, _) = keep_by(move |record| match (number, record) {
            (1, 1_007) => Err(AnalysisError::stage("keep", "enough")),
            _ => Ok(()),
        });
        Ok(Worker {
            // Endless: without the failure the others would never end.
            source: Source::new(reader.endless()),
            stage: Box::new(stage),
        })
    });
    assert_eq!(ended.error.unwrap().to_string(), "keep: enough");
    let total = ended.report.total;
    assert_eq!(total.given_back, 1);
    assert_eq!(total.chunks, total.acknowledged + total.given_back);
    let told: usize = verdicts.iter().map(|it| it.lock().unwrap().len()).sum();
    assert_eq!(u64::try_from(told).unwrap(), total.chunks);
}

#[test]
fn a_panicking_worker_is_an_error_and_its_chunk_is_given_back() {
    let workers = Workers::new(count(2));
    let mut verdicts = Vec::new();
    let ended = run(&workers, |number| {
        let (reader, told) = Scripted::new(play([u64::try_from(number).unwrap()]));
        verdicts.push(told);
        let (stage, _) = keep_by(|record| {
            assert_ne!(record, 1, "one is too many");
            Ok(())
        });
        Ok(Worker {
            source: Source::new(reader.endless()),
            stage: Box::new(stage),
        })
    });
    let error = ended.error.unwrap();
    assert!(
        matches!(&error, AnalysisError::StagePanicked { .. }),
        "{error}"
    );
    assert_eq!(verdicts[1].lock().unwrap()[0].1, Verdict::Retry);
}

#[test]
fn a_worker_that_cannot_be_made_is_the_error() {
    let workers = Workers::new(count(2));
    let ended = run(&workers, |number| match number {
        0 => {
            let (reader, _) = Scripted::new([]);
            let (stage, _) = keep_all();
            Ok(Worker {
                source: Source::new(reader.endless()),
                stage: Box::new(stage),
            })
        }
        _ => Err(AnalysisError::stage("make", "there is only one")),
    });
    assert_eq!(ended.error.unwrap().to_string(), "make: there is only one");
}

#[test]
fn the_idle_timeout_counts_the_silence_of_all() {
    let mut stop = Stop::default();
    stop.idle_timeout = Some(Duration::from_millis(150));
    let workers = Workers::new(count(2)).with_stop(stop);
    let started = Instant::now();
    let ended = run(&workers, |number| {
        let script = if number == 0 { Vec::new() } else { play(0..8) };
        let (reader, _) = Scripted::new(script);
        // A slow worker: eight chunks of 50 ms keep the silent one there.
        let (stage, _) = keep_by(|_| {
            let until = Instant::now() + Duration::from_millis(50);
            while Instant::now() < until {
                std::thread::park_timeout(Duration::from_millis(50));
            }
            Ok(())
        });
        Ok(Worker {
            source: Source::new(reader.endless()),
            stage: Box::new(stage),
        })
    });
    assert!(ended.error.is_none());
    assert_eq!(ended.report.total.acknowledged, 8);
    assert!(started.elapsed() >= Duration::from_millis(550));
}

#[test]
fn the_idle_timeout_waits_for_a_reader_that_is_not_at_its_end() {
    let mut stop = Stop::default();
    stop.idle_timeout = Some(Duration::from_millis(20));
    let workers = Workers::new(count(2)).with_stop(stop);
    let waited = AtomicUsize::new(0);
    let make = |number| {
        let mut script = play(0..if number == 0 { 0 } else { 8 });
        if number == 1 {
            script.insert(0, Play::Joins(Duration::from_millis(600)));
        }
        let (reader, _) = Scripted::new(script);
        let (stage, _) = keep_all();
        Ok(Worker {
            source: Source::new(reader.endless()),
            stage: Box::new(stage),
        })
    };
    let tick = |group: &Group| {
        let waits = group.waiting().since().is_some();
        waited.fetch_add(usize::from(waits), Ordering::Relaxed);
    };
    let ended = workers.run(make, || true, soon, tick);
    assert!(ended.error.is_none());
    assert_eq!(ended.report.total.acknowledged, 8);
    assert!(waited.into_inner() > 0, "nobody saw that the group waits");
    assert!(ended.report.total.waiting.since().is_none());
}

#[test]
fn parts_of_a_fan_out_are_at_their_end_when_their_reader_is() {
    let (reader, _) = Scripted::new([Play::Joins(Duration::from_secs(3_600))]);
    let mut parts = fan_out(reader.endless(), count(2)).unwrap();
    parts.iter_mut().for_each(|part| part.set_demand(1));
    let end = soon();
    while parts[1].waits_for() != Some("its part") {
        assert!(
            Instant::now() < end,
            "the part does not say what is waited for"
        );
        parts[1]
            .receive(Instant::now() + Duration::from_millis(5))
            .unwrap();
    }
    parts.into_iter().for_each(|part| drop(part.close(soon())));
}

#[test]
fn the_fan_out_keeps_the_order_of_each_lane_and_settles_everything() {
    let script =
        (0..50).flat_map(|sequence| (0..6).map(move |lane| Play::Chunk(of_lane(lane, sequence))));
    let (reader, verdicts) = Scripted::new(script);
    let mut parts = fan_out(reader, count(3)).unwrap().into_iter();
    let workers = Workers::new(count(3));
    let mut kept = Vec::new();
    let ended = run(&workers, |_| {
        let (stage, numbers) = keep_all();
        kept.push(numbers);
        Ok(Worker {
            source: Source::new(parts.next().unwrap()).with_demand(4),
            stage: Box::new(stage),
        })
    });
    assert!(ended.error.is_none(), "{:?}", ended.error);
    assert_eq!(ended.report.total.acknowledged, 300);
    assert_eq!(verdicts.lock().unwrap().len(), 300);
    let mut lanes: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
    for numbers in &kept {
        for number in numbers.lock().unwrap().iter() {
            lanes
                .entry(number / 1_000)
                .or_default()
                .push(number % 1_000);
        }
    }
    let expected: Vec<i64> = (0..50).collect();
    assert!(
        lanes.len() == 6 && lanes.values().all(|it| *it == expected),
        "{lanes:?}"
    );
}

#[test]
fn what_a_part_leaves_behind_goes_to_the_others() {
    let (reader, verdicts) = Scripted::new([Play::Chunk(chunk(0))]);
    let mut parts = fan_out(reader.endless(), count(2)).unwrap();
    parts.iter_mut().for_each(|part| part.set_demand(2));
    let by = soon();
    let owner = loop {
        let got = parts.iter_mut().position(|part| {
            let soon = Instant::now() + Duration::from_millis(5);
            matches!(part.receive(soon), Ok(Received::Chunk(_)))
        });
        if let Some(owner) = got {
            break owner;
        }
        assert!(Instant::now() < by, "no part got the chunk");
    };
    parts.remove(owner).close(soon());
    let mut other = parts.remove(0);
    let Ok(Received::Chunk(delivery)) = other.receive(soon()) else {
        panic!("the other part gets the chunk");
    };
    other.settle(delivery.token, Verdict::Ack).unwrap();
    let closed = other.close(soon());
    assert_eq!((closed.unsettled, closed.error.is_none()), (0, true));
    let told: Vec<Verdict> = verdicts.lock().unwrap().iter().map(|it| it.1).collect();
    assert_eq!(told, [Verdict::Retry, Verdict::Ack]);
}

#[test]
fn damage_is_settled_through_a_fan_out_if_the_medium_waits_for_it() {
    let damage = Play::UnsettledDamage(Bytes::from_static(b"torn"));
    let script = play([0]).into_iter().chain([damage]).chain(play([1]));
    let (reader, verdicts) = Scripted::new(script);
    let mut parts = fan_out(reader, count(2)).unwrap().into_iter();
    let by = soon();
    let ended = Workers::new(count(2)).run(
        |_| {
            let source = Source::new(parts.next().unwrap());
            let stage = Box::new(keep_all().0);
            Ok(Worker { source, stage })
        },
        || Instant::now() < by,
        soon,
        |_| {},
    );
    assert!(ended.error.is_none(), "{ended:?}");
    let mut verdicts = verdicts.lock().unwrap().clone();
    verdicts.sort_by_key(|(token, _)| token.0);
    let verdicts: Vec<_> = verdicts.into_iter().map(|(_, verdict)| verdict).collect();
    assert_eq!(verdicts, [Verdict::Ack, Verdict::Reject, Verdict::Ack]);
    assert_eq!(ended.report.total.quarantined, 1);
}

#[test]
fn an_error_of_the_one_reader_ends_all_workers() {
    let error = TransportError::new("read", "script:", RetryClass::Final, "it is gone");
    let (reader, _) = Scripted::new([Play::Chunk(chunk(0)), Play::Error(error)]);
    let mut parts = fan_out(reader.endless(), count(3)).unwrap().into_iter();
    let workers = Workers::new(count(3));
    let ended = run(&workers, |_| {
        let (stage, _) = keep_all();
        Ok(Worker {
            source: Source::new(parts.next().unwrap()),
            stage: Box::new(stage),
        })
    });
    assert_eq!(ended.error.unwrap().to_string(), "read script:: it is gone");
    assert_eq!(ended.report.total.acknowledged, 1);
}

#[test]
fn a_panic_of_the_one_reader_ends_all_workers_and_settles_nothing_after_it() {
    let (reader, verdicts) = Scripted::new([Play::Panic, Play::Chunk(chunk(0))]);
    let mut parts = fan_out(reader.endless(), count(2)).unwrap().into_iter();
    let workers = Workers::new(count(2));
    let ended = run(&workers, |_| {
        let (stage, _) = keep_all();
        Ok(Worker {
            source: Source::new(parts.next().unwrap()),
            stage: Box::new(stage),
        })
    });
    let error = ended.error.unwrap().to_string();
    assert!(error.ends_with("its thread has ended"), "{error}");
    assert!(verdicts.lock().unwrap().is_empty());
}

/// Takes a few bytes at a time, as a terminal may.
#[derive(Clone, Default)]
struct Bites(Arc<Mutex<Vec<u8>>>, Arc<AtomicUsize>);

impl Write for Bites {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let bite = bytes.len().min(40);
        self.0.lock().unwrap().extend(&bytes[..bite]);
        self.1.fetch_add(1, Ordering::Relaxed);
        std::thread::yield_now();
        Ok(bite)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn lines_of_several_workers_are_never_torn() {
    let output = Bites::default();
    let shared = SharedOutput::new(output.clone());
    let workers = Workers::new(count(4));
    let ended = run(&workers, |number| {
        let lane = u32::try_from(number).unwrap();
        let script = (0..15).map(|sequence| Play::Chunk(of_lane(lane, sequence)));
        let (reader, _) = Scripted::new(script);
        // One in work at a time: each line is flushed by itself.
        Ok(Worker {
            source: Source::new(reader).with_demand(1),
            stage: Box::new(JsonLines::new(shared.clone(), "the test")) as Box<dyn Stage>,
        })
    });
    assert!(ended.error.is_none());
    let text = String::from_utf8(output.0.lock().unwrap().clone()).unwrap();
    assert_eq!(text.lines().count(), 60);
    for line in text.lines() {
        serde_json::from_str::<serde_json::Value>(line).unwrap();
    }
}
