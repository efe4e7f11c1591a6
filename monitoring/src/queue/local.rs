//! The calling thread's queues.

use std::cell::{Cell, RefCell};
use std::sync::{Arc, Weak};

use baler_common::container::LossReason;
use baler_common::record::{Record, RowWriter, Schema};

#[cfg(feature = "enable")]
use super::block::CALL_WORDS;
use super::block::{Appended, RowRef, RowTime, Stamp};
use super::hot;
use super::reentrance::{Inside, admit};
use super::set::QueueSet;
use super::thread::ThreadQueue;

/// A row buffer that grew above this is not kept.
const KEEP_BYTES: usize = 64 << 10;

thread_local! {
    static LOCAL: RefCell<Local> = const { RefCell::new(Local { queues: Vec::new() }) };
    /// A row is built here, outside of every lock: building it runs the application's code.
    static ROW: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// What a thread keeps until it ends.
struct Local {
    /// The thread's queue in each set it has emitted to, the last one used at the front.
    queues: Vec<Mine>,
}

struct Mine {
    set: Weak<QueueSet>,
    key: u64,
    queue: Arc<ThreadQueue>,
}

/// Appends a record to the calling thread's queue in the set with this key, or does what the set's
/// policy says; whether it was appended.
///
/// `find` says which set it is, and is asked only where the thread's block will not do.
/// `write` is the application's code: it may emit itself, and may panic, which passes through; the
/// record is then as good as never emitted.
#[inline]
pub(crate) fn push<F: FnOnce() -> Option<Arc<QueueSet>>>(
    key: u64,
    find: F,
    schema: &Arc<Schema>,
    stamp: Stamp,
    write: impl FnOnce(&mut RowWriter<'_>),
) -> bool {
    let Some(mut fields) = take_row(key) else {
        return false;
    };
    let mut row = RowWriter::new(&mut fields);
    write(&mut row);
    let pushed = if row.is_too_large() {
        let inside = admit(key);
        inside.is_some() && find().is_some_and(|set| set.refuse(LossReason::TooLarge))
    } else {
        match hot::append_fields(key, schema, stamp, &fields) {
            Appended::Yes => true,
            Appended::Late => false,
            Appended::No => push_slowly(
                key,
                find,
                &RowRef::Fields {
                    schema,
                    stamp,
                    fields: &fields,
                },
            ),
        }
    };
    if fields.capacity() <= KEEP_BYTES
        && let Some(_inside) = Inside::enter()
    {
        // Without its storage the thread is about to end.
        ROW.try_with(|row| row.set(fields)).unwrap_or_default();
    }
    pushed
}

/// The thread's buffer, empty; a record that is emitted while another one is built finds a new one.
///
/// `None`, and the record is lost, if the thread may emit nothing now: who interrupts it must not
/// take a buffer of which it has taken one half.
fn take_row(key: u64) -> Option<Vec<u8>> {
    let _inside = admit(key)?;
    let mut fields = ROW.try_with(Cell::take).unwrap_or_default();
    fields.clear();
    Some(fields)
}

/// As [`push`], of a typed record: one whose type is flat goes straight into the thread's block.
#[inline]
pub(crate) fn push_record<R: Record, F: FnOnce() -> Option<Arc<QueueSet>>>(
    key: u64,
    find: F,
    record: &R,
    stamp: Stamp,
) -> bool {
    match append_words(key, record, stamp) {
        Some(Appended::Yes) => true,
        Some(Appended::Late) => false,
        Some(Appended::No) => push_record_slowly(key, find, record, stamp),
        None => push(key, find, R::schema(), stamp, |row| {
            record.write_fields(row)
        }),
    }
}

/// Appends a record to the thread's block as words, if its type is flat.
///
/// Not inlined, so that all beneath it is: where the record is known to lie is then known to all, and
/// what its time is.
#[inline(never)]
fn append_words<R: Record>(key: u64, record: &R, stamp: Stamp) -> Option<Appended> {
    record.write_words(hot::Row {
        key,
        schema: R::schema(),
        time: match R::TIME_WORD {
            Some(word) => RowTime::Field(word),
            None => RowTime::Own(stamp),
        },
    })
}

/// Appends a record for which the thread's block will not do, or does not know its type.
#[cold]
#[inline(never)]
fn push_record_slowly<R: Record>(
    key: u64,
    find: impl FnOnce() -> Option<Arc<QueueSet>>,
    record: &R,
    stamp: Stamp,
) -> bool {
    let schema = R::schema();
    if hot::learn_words(key, schema, R::WIDTHS) {
        match append_words(key, record, stamp) {
            Some(Appended::Yes) => return true,
            Some(Appended::Late) => return false,
            _ => (),
        }
    }
    push(key, find, schema, stamp, |row| record.write_fields(row))
}

/// Appends a row for which the thread's block will not do.
#[cold]
#[inline(never)]
fn push_slowly(key: u64, find: impl FnOnce() -> Option<Arc<QueueSet>>, row: &RowRef<'_>) -> bool {
    if let RowRef::Fields {
        schema,
        stamp,
        fields,
    } = row
        && hot::learn(key, schema, 0)
    {
        match hot::append_fields(key, schema, *stamp, fields) {
            Appended::Yes => return true,
            Appended::Late => return false,
            Appended::No => (),
        }
    }
    push_row(key, find, row)
}

/// Appends a compact row for which the thread's block will not do, or does what the policy of the
/// set with this key says.
#[cfg(feature = "enable")]
#[cold]
#[inline(never)]
pub(crate) fn push_call(
    key: u64,
    find: impl FnOnce() -> Option<Arc<QueueSet>>,
    row: [u64; CALL_WORDS],
) -> bool {
    push_row(key, find, &RowRef::Call(row))
}

/// Appends a row to the calling thread's queue in the set with this key, or does what its policy
/// says; whether it was appended.
fn push_row(key: u64, find: impl FnOnce() -> Option<Arc<QueueSet>>, row: &RowRef<'_>) -> bool {
    let Some(_inside) = admit(key) else {
        return false;
    };
    let Some(set) = find() else {
        return false;
    };
    let pushed = LOCAL.try_with(|local| {
        let mut local = local.try_borrow_mut().ok()?;
        let queue = local.find(&set);
        // The queue may hand the block to the collector.
        hot::let_go();
        let pushed = queue.push(&set, row);
        if let Some(block) = pushed.open {
            hot::hold(set.key(), block);
        }
        Some(pushed.appended)
    });
    match pushed {
        Ok(Some(appended)) => appended,
        // Its storage is gone already.
        _ => set.push_aside(row),
    }
}

impl Local {
    /// The thread's queue in this set, brought to the front and made if need be.
    fn find(&mut self, set: &Arc<QueueSet>) -> Arc<ThreadQueue> {
        if let Some(at) = self.queues.iter().position(|mine| mine.key == set.key()) {
            self.queues.swap(0, at);
        } else {
            self.queues.retain(|mine| mine.set.strong_count() > 0);
            let mine = Mine {
                set: Arc::downgrade(set),
                key: set.key(),
                queue: set.enter(),
            };
            self.queues.insert(0, mine);
        }
        self.queues
            .first()
            .map_or_else(|| set.enter(), |mine| Arc::clone(&mine.queue))
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        let _inside = Inside::enter();
        hot::let_go();
        for mine in self.queues.drain(..) {
            if let Some(set) = mine.set.upgrade() {
                set.leave(mine.queue);
            }
        }
    }
}
