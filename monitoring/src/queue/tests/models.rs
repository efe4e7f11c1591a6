//! Models of the queues under loom, which tries every order in which threads can interleave and
//! every value that a relaxed load may see (bounded in how often a thread is interrupted).
//!
//! Data that is per thread in the program ([`super::super::emit`], [`super::super::thread_block`])
//! is an [`Owner`] here, because loom's threads share one storage.

use std::sync::{Arc, OnceLock};

use baler_common::container::LossReason;
use baler_common::record::{Field, FieldType, Schema};
use baler_common::transport::Notify;
use loom::thread;

use super::super::block::{Block, append_record};
use super::super::set::QueueSet;
use super::super::thread_queue::{Outcome, ThreadQueue};
use super::super::{BlockReader, Overflow, QueueRow, flat_rows};

/// With this size two rows fill a block of 16 words.
const FIELDS: usize = 40;
const FIELD_WORDS: usize = FIELDS / 8;

/// Two blocks.
const TWO_BLOCKS: usize = 2 * 16 * 8;

struct NoWaker;

impl Notify for NoWaker {
    fn notify(&self) {}
}

fn schema() -> &'static Arc<Schema> {
    static SCHEMA: OnceLock<Arc<Schema>> = OnceLock::new();
    SCHEMA.get_or_init(|| {
        let fields: Vec<_> = (0..FIELD_WORDS)
            .map(|number| Field::new(format!("number{number}"), FieldType::U64))
            .collect();
        Arc::new(Schema::new("model.Number", fields).unwrap())
    })
}

fn model(run: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(4);
    builder.max_branches = 100_000;
    builder.check(run);
}

fn set(bytes: usize, overflow: Overflow) -> Arc<QueueSet> {
    Arc::new(QueueSet::new(4, bytes, overflow, Arc::new(NoWaker)))
}

/// A thread with its queue, and the block to which it appends without a lock.
struct Owner {
    set: Arc<QueueSet>,
    queue: Arc<ThreadQueue>,
    open: Option<Arc<Block>>,
}

impl Owner {
    fn new(set: &Arc<QueueSet>) -> Self {
        Self {
            set: Arc::clone(set),
            queue: set.enter(),
            open: None,
        }
    }

    fn emit(&mut self, number: u8) -> bool {
        let fields = [number; FIELDS];
        if let Some(block) = &self.open {
            if let Some(type_number) = block.number_of(schema()) {
                let words = block.words();
                let appended = if number.is_multiple_of(2) {
                    append_record(words, type_number, 7, &fields)
                } else {
                    let row = [u64::from_le_bytes([number; 8]); FIELD_WORDS];
                    flat_rows::append_row(words, type_number, 7, [], || row)
                };
                if appended {
                    return true;
                }
            }
        }
        self.open = None;
        let pushed = self.queue.push(
            &self.set,
            &QueueRow::Record {
                schema: schema(),
                timestamp: 7,
                fields: &fields,
            },
        );
        self.open = pushed.open;
        pushed.outcome == Outcome::Appended
    }

    /// Acts like a probe; returns whether the call was accepted.
    fn call(&mut self, number: u64) -> bool {
        let call = [super::super::KIND_CALL, number, 0, 0, 0];
        let open = self.open.as_ref();
        if open.is_some_and(|block| super::super::block::append_call(block.words(), || call)) {
            return true;
        }
        self.open = None;
        let pushed = self.queue.push(&self.set, &QueueRow::Call(call));
        self.open = pushed.open;
        pushed.outcome == Outcome::Appended
    }

    fn end(mut self) {
        self.open = None;
        self.set.leave(self.queue);
    }
}

/// One round of the collector.
fn drain(set: &QueueSet, numbers: &mut Vec<u8>) {
    let (mut known, mut queues) = (0, Vec::new());
    let is_pressed = set.begin_round(&mut known, &mut queues);
    for queue in queues {
        let mut mark = None;
        let mut reader = BlockReader::default();
        while let Some(part) = queue.claim(set, &mut mark, is_pressed) {
            reader.read(part);
            while let Some(row) = reader.next_row() {
                numbers.push(match row {
                    QueueRow::Record { fields, .. } => {
                        let number = fields[0];
                        assert_eq!(fields, [number; FIELDS], "a torn row");
                        number
                    }
                    QueueRow::Call([_, number, ..]) => u8::try_from(number).unwrap(),
                });
            }
        }
    }
    set.end_round();
}

fn assert_adds_up(set: &QueueSet, drained: &[u8]) {
    let counts = set.counts();
    let known = u64::try_from(drained.len()).unwrap() + counts.lost.total();
    assert_eq!(counts.emitted, known + counts.queued, "{counts:?}");
}

#[test]
fn rows_arrive_whole_and_in_order_while_blocks_are_handed_over() {
    model(|| {
        let set = set(1 << 20, Overflow::DropNewest);
        let mut owner = Owner::new(&set);
        let emitter = thread::spawn(move || {
            assert!((0..3).all(|number| owner.emit(number)));
            owner.end();
        });
        let mut numbers = Vec::new();
        drain(&set, &mut numbers);
        // While the thread emits, the figures belong to some moment.
        assert_adds_up(&set, &numbers);
        emitter.join().unwrap();
        drain(&set, &mut numbers);
        assert_eq!(numbers, [0, 1, 2]);
        assert_eq!(set.bytes(), 0);
        assert_adds_up(&set, &numbers);
    });
}

#[test]
fn eviction_takes_what_nobody_reads_or_fills() {
    model(|| {
        let set = set(TWO_BLOCKS, Overflow::DropOldest);
        let mut owner = Owner::new(&set);
        let emitter = thread::spawn(move || {
            for number in 0..5 {
                owner.emit(number);
            }
        });
        let mut numbers = Vec::new();
        drain(&set, &mut numbers);
        emitter.join().unwrap();
        drain(&set, &mut numbers);
        assert!(numbers.is_sorted_by(|one, next| one < next), "{numbers:?}");
        let counts = set.counts();
        assert_eq!((counts.emitted, counts.queued), (5, 0));
        let lost = counts.lost.get(LossReason::QueueFullOldest);
        assert_eq!(lost, counts.lost.total());
        assert_adds_up(&set, &numbers);
    });
}

#[test]
fn thread_evicts_a_full_block_of_another_and_spares_the_one_being_filled() {
    model(|| {
        let set = set(TWO_BLOCKS, Overflow::DropOldest);
        let mut first = Owner::new(&set);
        // Two blocks, one of them full.
        assert!((0..3).all(|number| first.emit(number)));
        let mut second = Owner::new(&set);
        let emitters = (
            thread::spawn(move || first.emit(3)),
            thread::spawn(move || second.emit(9)),
        );
        let mut numbers = Vec::new();
        drain(&set, &mut numbers);
        assert!(
            emitters.0.join().unwrap(),
            "there is room in the open block"
        );
        let taken = emitters.1.join().unwrap();
        drain(&set, &mut numbers);
        assert_eq!(numbers.contains(&9), taken);
        assert!(numbers.contains(&2) && numbers.contains(&3));
        assert_adds_up(&set, &numbers);
    });
}

#[test]
fn queue_of_a_thread_that_ends_is_continued_by_the_next() {
    model(|| {
        let set = set(1 << 20, Overflow::DropNewest);
        let mut first = Owner::new(&set);
        let emitter = {
            let set = Arc::clone(&set);
            thread::spawn(move || {
                assert!(first.emit(0));
                first.end();
                let mut next = Owner::new(&set);
                assert!(next.emit(1));
                next.end();
            })
        };
        let mut numbers = Vec::new();
        drain(&set, &mut numbers);
        emitter.join().unwrap();
        drain(&set, &mut numbers);
        assert_eq!(numbers, [0, 1]);
        assert_eq!((set.counts().emitted, set.bytes()), (2, 0));
    });
}

#[test]
fn what_was_said_to_be_taken_at_a_shutdown_arrives_and_nothing_else() {
    model(|| {
        let set = set(1 << 20, Overflow::DropNewest);
        let mut owner = Owner::new(&set);
        assert!(owner.emit(0));
        let emitter = thread::spawn(move || {
            let taken: Vec<_> = (1..3).filter(|number| owner.emit(*number)).collect();
            taken
        });
        set.close();
        let counts = set.counts();
        let mut numbers = Vec::new();
        drain(&set, &mut numbers);
        let taken = emitter.join().unwrap();
        drain(&set, &mut numbers);
        assert_eq!(numbers.split_first(), Some((&0, taken.as_slice())));
        // Counts did not change after the queues were closed.
        assert_eq!(counts.emitted, u64::try_from(numbers.len()).unwrap());
        assert_eq!(set.counts().emitted, counts.emitted);
    });
}

/// Calls that the closed queues refuse go to the next controller's queues. So each call is in the
/// account of exactly one of them.
#[test]
fn calls_that_end_during_a_handover_are_in_the_account_of_one_controller() {
    model(|| {
        let old = set(1 << 20, Overflow::DropNewest);
        let mut owner = Owner::new(&old);
        assert!(owner.call(0));
        let emitter = thread::spawn(move || {
            let taken: Vec<_> = (1..3)
                .filter(|number| owner.call((*number).into()))
                .collect();
            taken
        });
        old.close();
        let emitted = old.counts().emitted;
        let mut numbers = Vec::new();
        drain(&old, &mut numbers);
        let taken: Vec<u8> = emitter.join().unwrap();
        drain(&old, &mut numbers);
        assert_eq!(numbers.split_first(), Some((&0, taken.as_slice())));
        assert_eq!(emitted, u64::try_from(numbers.len()).unwrap());
        assert_eq!(old.counts().emitted, emitted);
    });
}

#[test]
fn thread_that_waits_for_room_is_woken_and_loses_nothing() {
    model(|| {
        let set = set(TWO_BLOCKS, Overflow::Block);
        let mut owner = Owner::new(&set);
        assert!((0..4).all(|number| owner.emit(number)));
        let emitter = thread::spawn(move || assert!(owner.emit(4)));
        let mut numbers = Vec::new();
        // Loom's waits have no timeout: a missed wake-up is a deadlock.
        drain(&set, &mut numbers);
        emitter.join().unwrap();
        drain(&set, &mut numbers);
        assert_eq!(numbers, [0, 1, 2, 3, 4]);
        assert!(set.counts().lost.is_empty());
    });
}

#[test]
fn thread_that_waits_for_room_is_let_go_by_a_shutdown() {
    model(|| {
        let set = set(TWO_BLOCKS, Overflow::Block);
        let mut owner = Owner::new(&set);
        assert!((0..4).all(|number| owner.emit(number)));
        let emitter = thread::spawn(move || owner.emit(4));
        set.close();
        assert!(!emitter.join().unwrap());
        let mut numbers = Vec::new();
        drain(&set, &mut numbers);
        assert_eq!(numbers, [0, 1, 2, 3]);
        assert_adds_up(&set, &numbers);
    });
}
