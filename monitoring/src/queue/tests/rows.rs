//! The input and the output of the queues.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use baler_common::container::LossReason;
use baler_common::record::{Field, FieldType, RowWriter, Schema};
use baler_common::transport::Notify;

use super::super::set::QueueSet;
use super::super::thread_queue::{Outcome, QueueCounts};
use super::super::{BlockReader, Overflow, QueueRow};
use crate::clock::Clock;

/// Counts wake-ups of the collector.
#[derive(Default)]
struct WakeCounter(AtomicU64);

impl Notify for WakeCounter {
    fn notify(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn schema(name: &str) -> Arc<Schema> {
    let fields = vec![Field::new("number", FieldType::U64)];
    Arc::new(Schema::new(name, fields).unwrap())
}

fn number_schema() -> &'static Arc<Schema> {
    static SCHEMA: OnceLock<Arc<Schema>> = OnceLock::new();
    SCHEMA.get_or_init(|| schema("test.Number"))
}

fn set(bytes: usize, overflow: Overflow) -> (Arc<QueueSet>, Arc<WakeCounter>) {
    let wakes = Arc::new(WakeCounter::default());
    let notify: Arc<dyn Notify> = Arc::<WakeCounter>::clone(&wakes);
    let key = Clock::System.key();
    (Arc::new(QueueSet::new(key, bytes, overflow, notify)), wakes)
}

fn push(
    set: &Arc<QueueSet>,
    schema: &Arc<Schema>,
    timestamp: i64,
    write: impl FnOnce(&mut RowWriter<'_>),
) -> bool {
    let find = || Some(Arc::clone(set));
    super::super::push(set.key(), find, schema, timestamp, write)
}

fn emit(set: &Arc<QueueSet>, number: u64) -> bool {
    push(set, number_schema(), 7, |row| row.u64(number))
}

fn push_aside(set: &QueueSet, number: u64) -> Outcome {
    set.push_aside(&QueueRow::Record {
        schema: number_schema(),
        timestamp: 7,
        fields: &number.to_le_bytes(),
    })
}

/// Takes everything out, queue by queue.
fn drain_rows(set: &QueueSet, mut take: impl FnMut(&Arc<Schema>, i64, &[u8])) {
    let (mut known, mut queues) = (0, Vec::new());
    let is_pressed = set.begin_round(&mut known, &mut queues);
    for queue in queues {
        let mut mark = None;
        let mut reader = BlockReader::default();
        while let Some(part) = queue.claim(set, &mut mark, is_pressed) {
            reader.read(part);
            while let Some(row) = reader.next_row() {
                match row {
                    QueueRow::Record {
                        schema,
                        timestamp,
                        fields,
                    } => take(schema, timestamp, fields),
                    QueueRow::Call(call) => panic!("{call:?}"),
                }
            }
        }
    }
    set.end_round();
}

fn drain(set: &QueueSet) -> Vec<u64> {
    let mut numbers = Vec::new();
    drain_rows(set, |schema, timestamp, fields| {
        assert_eq!((schema, timestamp), (number_schema(), 7));
        numbers.push(u64::from_le_bytes(fields.try_into().unwrap()));
    });
    numbers
}

fn assert_adds_up(counts: &QueueCounts, drained: usize) {
    let known = counts.queued + counts.lost.total() + u64::try_from(drained).unwrap();
    assert_eq!(counts.emitted, known, "{counts:?}");
}

#[test]
fn rows_come_out_as_they_went_in_and_the_collector_is_woken_when_a_quarter_is_used() {
    let (set, wakes) = set(1 << 20, Overflow::DropNewest);
    // A row of 8 bytes takes 24.
    let quarter = (256 << 10) / 24;
    for number in 0..quarter - 500 {
        assert!(emit(&set, number));
    }
    assert_eq!(wakes.0.load(Ordering::Relaxed), 0);
    for number in quarter - 500..quarter + 2_000 {
        assert!(emit(&set, number));
    }
    assert!((1..=3).contains(&wakes.0.load(Ordering::Relaxed)));
    assert!(set.bytes() >= 256 << 10);
    assert_eq!(drain(&set), (0..quarter + 2_000).collect::<Vec<_>>());
    // The open block stays with its thread.
    assert_eq!(set.bytes(), 32 << 10);
    assert!(emit(&set, 0));
    assert_eq!(drain(&set), [0]);
}

#[test]
fn blocks_begin_small_and_grow() {
    let (set, _) = set(1 << 20, Overflow::DropNewest);
    emit(&set, 0);
    assert_eq!(set.bytes(), 1 << 10);
    for number in 1..100 {
        emit(&set, number);
    }
    assert_eq!(set.bytes(), (1 << 10) + (2 << 10));
}

#[test]
fn rows_of_many_types_find_their_types_again() {
    let (set, _) = set(1 << 20, Overflow::DropNewest);
    let types: Vec<_> = (0..200).map(|n| schema(&format!("test.Type{n}"))).collect();
    let mut expected = Vec::new();
    // Each by itself, then some in turns.
    let turns = (0..50).flat_map(|_| types.iter().take(20));
    for (number, schema) in types.iter().chain(turns).enumerate() {
        assert!(push(&set, schema, 0, |row| row
            .u64(u64::try_from(number).unwrap())));
        expected.push(schema.name().to_owned());
    }
    let mut names = Vec::new();
    drain_rows(&set, |schema, _, _| names.push(schema.name().to_owned()));
    assert_eq!(names, expected);
}

#[test]
fn fields_of_any_length_come_out_as_they_went_in() {
    let (set, _) = set(1 << 20, Overflow::DropNewest);
    let mut expected = Vec::new();
    for length in (0..40).chain([1_000, 5_000, 16_000, 40_000, 3]) {
        let bytes: Vec<_> = (0..length)
            .map(|n| u8::try_from(n % 251).unwrap())
            .collect();
        assert!(push(&set, number_schema(), 7, |row| bytes
            .iter()
            .for_each(|byte| row.u8(*byte))));
        expected.push(bytes);
    }
    let mut fields = Vec::new();
    drain_rows(&set, |_, _, row| fields.push(row.to_vec()));
    assert_eq!(fields, expected);
}

#[test]
fn open_block_is_read_in_place_while_its_owner_goes_on() {
    let (set, _) = set(1 << 20, Overflow::DropNewest);
    for number in 0..500 {
        assert!(emit(&set, number));
        assert_eq!(drain(&set), [number]);
    }
    assert_eq!(set.counts().queued, 0);
}

#[test]
fn blocks_that_idle_threads_hold_are_room_for_others_once_they_are_read() {
    for overflow in [
        Overflow::Block,
        Overflow::BlockTimeout(Duration::from_secs(20)),
        Overflow::DropNewest,
        Overflow::DropOldest,
    ] {
        let (set, wakes) = set(4 << 10, overflow);
        let (full, done) = (Barrier::new(5), Barrier::new(5));
        thread::scope(|scope| {
            for number in 0..4 {
                let (set, full, done) = (&set, &full, &done);
                scope.spawn(move || {
                    assert!(emit(set, number));
                    full.wait();
                    done.wait();
                    // The thread continues in the block that does not count any more.
                    assert!(emit(set, 100 + number));
                });
            }
            full.wait();
            let other = {
                let set = &set;
                scope.spawn(move || (0..50).filter(|_| emit(set, 50)).count())
            };
            // Like the collector when it is woken.
            let by = Instant::now() + Duration::from_secs(20);
            let mut numbers = Vec::new();
            while wakes.0.load(Ordering::Relaxed) == 0 {
                assert!(Instant::now() < by);
                thread::yield_now();
            }
            while !other.is_finished() {
                numbers.extend(drain(&set));
                assert!(Instant::now() < by, "{overflow:?}: {:?}", set.counts());
            }
            let taken = other.join().unwrap();
            // A refusal may have come after the last check.
            drain(&set);
            assert!(emit(&set, 7), "there is room for {overflow:?}");
            if matches!(overflow, Overflow::Block | Overflow::BlockTimeout(_)) {
                assert_eq!(taken, 50);
            }
            done.wait();
        });
        let counts = set.counts();
        let mut late = drain(&set);
        late.retain(|number| *number >= 100);
        late.sort_unstable();
        assert_eq!(late, [100, 101, 102, 103]);
        assert_eq!(set.counts().queued, 0);
        assert!(counts.emitted >= 59);
    }
}

#[test]
fn record_that_was_refused_was_not_sealed_in() {
    let (set, _) = set(1 << 20, Overflow::DropNewest);
    assert!(emit(&set, 0));
    let closing = Arc::clone(&set);
    thread::spawn(move || closing.close()).join().unwrap();
    for number in 1..4 {
        assert!(!emit(&set, number));
    }
    assert_eq!(set.counts().emitted, 1);
    assert_eq!(drain(&set), [0]);
}

#[test]
fn ten_thousand_threads_that_emit_once_lose_nothing_and_leave_nothing() {
    let (set, _) = set(16 << 20, Overflow::DropNewest);
    let mut numbers = Vec::new();
    for first in (0..10_000).step_by(100) {
        let go = Barrier::new(100);
        thread::scope(|scope| {
            for number in first..first + 100 {
                let (set, go) = (&set, &go);
                scope.spawn(move || {
                    // All live at once, so none continues the queue of another.
                    go.wait();
                    assert!(emit(set, number));
                    go.wait();
                });
            }
        });
        if first % 1_000 == 0 {
            numbers.extend(drain(&set));
        }
    }
    numbers.extend(drain(&set));
    numbers.sort_unstable();
    assert_eq!(numbers, (0..10_000).collect::<Vec<_>>());
    // A scope ends a moment before the storage of its threads does.
    let by = Instant::now() + Duration::from_secs(20);
    while set.bytes() > 0 {
        assert!(Instant::now() < by, "{} bytes are left", set.bytes());
        assert!(drain(&set).is_empty());
    }
    let (mut known, mut queues) = (0, Vec::new());
    set.refresh(&mut known, &mut queues);
    assert!(queues.len() <= 17, "{} queues are left", queues.len());
    let counts = set.counts();
    assert_eq!((counts.emitted, counts.queued), (10_000, 0));
}

#[test]
fn newest_is_dropped_when_the_budget_is_used_up() {
    let (set, _) = set(4 << 10, Overflow::DropNewest);
    let taken = (0..1_000).filter(|number| emit(&set, *number)).count();
    assert!(set.bytes() <= 4 << 10);
    assert_eq!(
        drain(&set),
        (0..u64::try_from(taken).unwrap()).collect::<Vec<_>>()
    );
    let counts = set.counts();
    assert_adds_up(&counts, taken);
    assert_eq!(
        counts.lost.get(LossReason::QueueFullNewest),
        counts.lost.total()
    );
    assert!(emit(&set, 0), "there is room again");
}

#[test]
fn collector_is_woken_once_when_other_threads_hold_all_the_room() {
    let (set, wakes) = set(4 << 10, Overflow::DropNewest);
    let (full, done) = (Barrier::new(5), Barrier::new(5));
    thread::scope(|scope| {
        for number in 0..4 {
            let (set, full, done) = (&set, &full, &done);
            scope.spawn(move || {
                assert!(emit(set, number));
                full.wait();
                // A thread would take over the queue of one that has ended.
                done.wait();
            });
        }
        full.wait();
        assert_eq!(wakes.0.load(Ordering::Relaxed), 0, "no block is full");
        let taken = (0..100).filter(|number| emit(&set, *number)).count();
        done.wait();
        assert_eq!(taken, 0);
    });
    assert_eq!(wakes.0.load(Ordering::Relaxed), 1);
    assert_eq!(drain(&set).len(), 4);
    assert!(emit(&set, 0), "there is room again");
}

#[test]
fn oldest_block_of_the_thread_is_dropped_when_the_budget_is_used_up() {
    let (set, _) = set(4 << 10, Overflow::DropOldest);
    for number in 0..1_000 {
        assert!(emit(&set, number));
    }
    let numbers = drain(&set);
    assert_eq!(numbers.last(), Some(&999));
    let first = 1_000 - u64::try_from(numbers.len()).unwrap();
    assert_eq!(numbers, (first..1_000).collect::<Vec<_>>());
    let counts = set.counts();
    assert_eq!(counts.lost.get(LossReason::QueueFullOldest), first);
    assert_adds_up(&counts, numbers.len());
}

#[test]
fn thread_without_a_block_evicts_the_oldest_of_the_others() {
    let (set, _) = set(4 << 10, Overflow::DropOldest);
    for number in 0..150 {
        emit(&set, number);
    }
    assert!(
        set.bytes() > 3 << 10,
        "the budget is used up by this thread"
    );
    let other = Arc::clone(&set);
    assert!(thread::spawn(move || emit(&other, 1_000)).join().unwrap());
    let counts = set.counts();
    assert!(counts.lost.get(LossReason::QueueFullOldest) > 0);
    let numbers = drain(&set);
    assert!(numbers.contains(&1_000) && numbers.contains(&149) && !numbers.contains(&0));
    assert_adds_up(&set.counts(), numbers.len());
}

#[test]
fn blocked_thread_goes_on_when_there_is_room() {
    let (set, _) = set(4 << 10, Overflow::Block);
    let emitting = Arc::clone(&set);
    let emitter = thread::spawn(move || (0..2_000).all(|number| emit(&emitting, number)));
    let mut numbers = Vec::new();
    while numbers.len() < 2_000 {
        numbers.extend(drain(&set));
        thread::yield_now();
    }
    assert!(emitter.join().unwrap());
    assert_eq!(numbers, (0..2_000).collect::<Vec<_>>());
    assert!(set.counts().lost.is_empty());
}

#[test]
fn blocked_thread_is_let_go_when_nobody_will_make_room() {
    for close in [true, false] {
        let (set, _) = set(4 << 10, Overflow::Block);
        let emitting = Arc::clone(&set);
        let emitter = thread::spawn(move || {
            let mut number = 0;
            while emit(&emitting, number) {
                number += 1;
            }
            number
        });
        let full = Instant::now() + Duration::from_secs(10);
        while set.bytes() < 4 << 10 {
            assert!(Instant::now() < full);
            thread::yield_now();
        }
        if close {
            set.close();
        } else {
            set.stop_waiting();
        }
        let taken = emitter.join().unwrap();
        let counts = set.counts();
        assert_eq!(counts.queued, taken);
        // Closed before it waited, its last record was not emitted any more.
        assert!(counts.lost.get(LossReason::Shutdown) <= 1);
        assert_adds_up(&counts, 0);
    }
}

#[test]
fn waiting_has_an_end_if_the_policy_says_so() {
    let timeout = Duration::from_millis(30);
    let (set, _) = set(4 << 10, Overflow::BlockTimeout(timeout));
    let mut number = 0;
    let mut began = Instant::now();
    while emit(&set, number) {
        number += 1;
        began = Instant::now();
    }
    assert!(began.elapsed() >= timeout);
    assert_eq!(set.counts().lost.get(LossReason::BlockTimeout), 1);
}

#[test]
fn record_larger_than_a_block_has_one_of_its_own() {
    let (set, _) = set(100 << 10, Overflow::DropNewest);
    let bytes = vec![1; 50 << 10];
    assert!(emit(&set, 0));
    assert!(push(&set, number_schema(), 7, |row| row.bytes(&bytes)));
    assert!(emit(&set, 1));
    assert_eq!(set.counts().queued, 3);
    assert!(set.bytes() > 50 << 10);
    let too_large = vec![1; 100 << 10];
    assert!(!push(&set, number_schema(), 7, |row| row.bytes(&too_large)));
    assert_eq!(set.counts().lost.get(LossReason::TooLarge), 1);
}

#[test]
fn queue_of_an_ended_thread_is_drained_and_continued_by_the_next() {
    let (set, _) = set(1 << 20, Overflow::DropNewest);
    for number in 0..50 {
        let set = Arc::clone(&set);
        assert!(thread::spawn(move || emit(&set, number)).join().unwrap());
    }
    let (mut known, mut queues) = (0, Vec::new());
    set.refresh(&mut known, &mut queues);
    assert_eq!(queues.len(), 2, "one for all threads and the one beside");
    assert_eq!(drain(&set), (0..50).collect::<Vec<_>>());
}

#[test]
fn closed_queues_take_and_count_nothing() {
    let (set, _) = set(1 << 20, Overflow::DropNewest);
    assert!(emit(&set, 0));
    set.close();
    assert!(!emit(&set, 1));
    let other = Arc::clone(&set);
    assert!(!thread::spawn(move || emit(&other, 2)).join().unwrap());
    assert_eq!(set.counts().emitted, 1);
    assert_eq!(drain(&set), [0]);
}

#[test]
fn threads_that_wait_at_the_queue_beside_theirs_lose_nothing() {
    for overflow in [Overflow::Block, Overflow::DropOldest] {
        let (set, _) = set(4 << 10, overflow);
        let threads: Vec<_> = (0..8)
            .map(|thread| {
                let set = Arc::clone(&set);
                thread::spawn(move || {
                    for number in 0..2_000 {
                        push_aside(&set, thread * 2_000 + number);
                    }
                })
            })
            .collect();
        let by = Instant::now() + Duration::from_secs(20);
        let mut numbers = Vec::new();
        while threads.iter().any(|thread| !thread.is_finished()) {
            assert!(Instant::now() < by, "{:?}", set.counts());
            numbers.extend(drain(&set));
        }
        numbers.extend(drain(&set));
        numbers.sort_unstable();
        numbers.dedup();
        let counts = set.counts();
        assert_eq!((counts.emitted, counts.queued, set.bytes()), (16_000, 0, 0));
        assert_adds_up(&counts, numbers.len());
        if overflow == Overflow::Block {
            assert!(counts.lost.is_empty(), "{counts:?}");
        }
    }
}

#[test]
fn large_record_evicts_as_many_blocks_as_it_needs() {
    let (set, _) = set(1 << 20, Overflow::DropOldest);
    let mut number = 0;
    while set.bytes() < 1 << 20 {
        emit(&set, number);
        number += 1;
    }
    let bytes = vec![1; 500 << 10];
    assert!(push(&set, number_schema(), 7, |row| row.bytes(&bytes)));
    assert!(emit(&set, number), "what is left is used");
}
