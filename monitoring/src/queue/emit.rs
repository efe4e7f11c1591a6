//! From a record or a call to a row in the calling thread's block.
//!
//! The usual row goes straight into the block (`thread_block`). Where there is no block, no room in
//! it, or a new type, the thread's queue takes the row under its lock (`thread_queue`).
//!
//! Next: `flat_rows`, which writes the row, and `thread_block`, which finds its block.

use std::cell::{Cell, RefCell};
use std::sync::{Arc, Weak};

use baler_common::container::LossReason;
use baler_common::record::{Record, RowWriter, Schema};

use super::block::CALL_WORDS;
use super::block::QueueRow;
use super::reentrance::{Inside, admit};
use super::set::QueueSet;
use super::thread_queue::{Outcome, ThreadQueue};
use super::{flat_rows, thread_block};

/// A larger row buffer is not kept.
const KEEP_BYTES: usize = 64 << 10;

thread_local! {
    static QUEUES: RefCell<ThreadQueues> = const { RefCell::new(ThreadQueues { queues: Vec::new() }) };
    /// A row is built here, outside of every lock, because building it runs the application's code.
    static ROW: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// The queues of a thread, until it ends.
struct ThreadQueues {
    /// One for each set that the thread has emitted to.
    queues: Vec<SetQueue>,
}

/// A thread's queue in one set.
struct SetQueue {
    set: Weak<QueueSet>,
    key: u64,
    queue: Arc<ThreadQueue>,
}

/// Appends a record to the calling thread's queue in the set with this key, or applies the set's
/// overflow policy. Returns whether the record was appended.
///
/// `find` returns the set that receives records now. It is called only if the thread's block is not
/// enough. If that set is closed and `find` then returns another one, the other one takes the
/// record. `write` is the application's code and may emit itself. If it panics, the panic
/// propagates and the record was not emitted.
#[inline]
pub(crate) fn push<F: Fn() -> Option<Arc<QueueSet>>>(
    key: u64,
    find: F,
    schema: &Arc<Schema>,
    timestamp: i64,
    write: impl FnOnce(&mut RowWriter<'_>),
) -> bool {
    let Some(mut fields) = take_row_buffer(key) else {
        return false;
    };
    let mut row = RowWriter::new(&mut fields);
    write(&mut row);
    let pushed = if row.is_too_large() {
        push_to_open_set(key, find, |set| set.refuse(LossReason::TooLarge))
    } else {
        thread_block::append_record(key, schema, timestamp, &fields)
            || push_slowly(key, find, schema, timestamp, &fields)
    };
    if fields.capacity() <= KEEP_BYTES {
        if let Some(_inside) = Inside::enter() {
            // If the thread-local storage is gone, the thread is about to end.
            ROW.try_with(|row| row.set(fields)).ok();
        }
    }
    pushed
}

/// Takes the thread's row buffer, empty. A record that is emitted while another one is built gets a
/// new buffer.
///
/// Returns `None`, and the record is lost, if the thread may not emit now. A signal handler must
/// not take a buffer that is only half moved.
fn take_row_buffer(key: u64) -> Option<Vec<u8>> {
    let _inside = admit(key)?;
    let mut fields = ROW.try_with(Cell::take).unwrap_or_default();
    fields.clear();
    Some(fields)
}

/// As [`push`], for a typed record. A record of a flat type goes straight into the thread's block.
#[inline]
pub(crate) fn push_record<R: Record, F: Fn() -> Option<Arc<QueueSet>>>(
    key: u64,
    find: F,
    record: &R,
    timestamp: i64,
) -> bool {
    match flat_rows::append(key, record, timestamp) {
        Some(true) => true,
        Some(false) => push_record_slowly(key, find, record, timestamp),
        None => push(key, find, R::schema(), timestamp, |row| {
            record.write_fields(row);
        }),
    }
}

/// Appends a record of a flat type if the thread's block has no room or may not know the type.
#[cold]
#[inline(never)]
fn push_record_slowly<R: Record>(
    key: u64,
    find: impl Fn() -> Option<Arc<QueueSet>>,
    record: &R,
    timestamp: i64,
) -> bool {
    if flat_rows::learn_type::<R>(key) && flat_rows::append(key, record, timestamp) == Some(true) {
        return true;
    }
    push(key, find, R::schema(), timestamp, |row| {
        record.write_fields(row);
    })
}

/// Appends a record if the thread's block has no room or may not know its type.
#[cold]
#[inline(never)]
fn push_slowly(
    key: u64,
    find: impl Fn() -> Option<Arc<QueueSet>>,
    schema: &Arc<Schema>,
    timestamp: i64,
    fields: &[u8],
) -> bool {
    if thread_block::learn_type(key, schema, 0)
        && thread_block::append_record(key, schema, timestamp, fields)
    {
        return true;
    }
    let row = QueueRow::Record {
        schema,
        timestamp,
        fields,
    };
    push_row(key, find, &row)
}

/// Appends a call if the thread's block is not enough.
#[cold]
#[inline(never)]
pub(crate) fn push_call(
    key: u64,
    find: impl Fn() -> Option<Arc<QueueSet>>,
    call: [u64; CALL_WORDS],
) -> bool {
    push_row(key, find, &QueueRow::Call(call))
}

/// Appends a row to the calling thread's queue in the set with this key, or applies the set's
/// overflow policy. Returns whether the row was appended.
fn push_row(key: u64, find: impl Fn() -> Option<Arc<QueueSet>>, row: &QueueRow<'_>) -> bool {
    push_to_open_set(key, find, |set| {
        let pushed = QUEUES.try_with(|queues| {
            let mut queues = queues.try_borrow_mut().ok()?;
            let queue = queues.find(set);
            // The queue may hand the block to the collector.
            thread_block::let_go();
            let pushed = queue.push(set, row);
            if let Some(block) = pushed.open {
                thread_block::hold(set.key(), block);
            }
            Some(pushed.outcome)
        });
        match pushed {
            Ok(Some(outcome)) => outcome,
            // The thread-local storage is gone.
            _ => set.push_aside(row),
        }
    })
}

/// Lets the set that `find` returns take or count a record; returns whether it was taken.
///
/// The set may have been closed since it was found, because another controller has taken over. Then
/// that controller's set takes the record, so exactly one of the two accounts for it.
fn push_to_open_set(
    key: u64,
    find: impl Fn() -> Option<Arc<QueueSet>>,
    push: impl Fn(&Arc<QueueSet>) -> Outcome,
) -> bool {
    let Some(_inside) = admit(key) else {
        return false;
    };
    let mut closed = None;
    while let Some(set) = find().filter(|set| closed != Some(set.key())) {
        match push(&set) {
            Outcome::Appended => return true,
            Outcome::Closed => closed = Some(set.key()),
            Outcome::Lost => return false,
        }
    }
    false
}

impl ThreadQueues {
    /// Returns the thread's queue in this set, and creates it if necessary.
    fn find(&mut self, set: &Arc<QueueSet>) -> Arc<ThreadQueue> {
        if let Some(known) = self.queues.iter().find(|queue| queue.key == set.key()) {
            return Arc::clone(&known.queue);
        }
        self.queues.retain(|queue| queue.set.strong_count() > 0);
        let queue = set.enter();
        self.queues.push(SetQueue {
            set: Arc::downgrade(set),
            key: set.key(),
            queue: Arc::clone(&queue),
        });
        queue
    }
}

impl Drop for ThreadQueues {
    fn drop(&mut self) {
        let _inside = Inside::enter();
        thread_block::let_go();
        for queue in self.queues.drain(..) {
            if let Some(set) = queue.set.upgrade() {
                if !set.is_forked() {
                    set.leave(queue.queue);
                }
            }
        }
    }
}
