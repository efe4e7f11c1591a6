//! The calling thread's queues.

use std::cell::RefCell;
use std::sync::{Arc, Weak};

use baler_common::container::LossReason;
use baler_common::record::{RowWriter, Schema};

use super::set::QueueSet;
use super::suppress::is_suppressed;
use super::thread::ThreadQueue;

/// A row buffer that grew above this is not kept.
const KEEP_BYTES: usize = 64 << 10;

thread_local! {
    static LOCAL: RefCell<Local> = const { RefCell::new(Local::new()) };
}

/// What a thread keeps between two records.
struct Local {
    /// A row is built here, outside of every lock: building it runs the application's code.
    row: Vec<u8>,
    /// The thread's queue in each set it has emitted to, the last one used at the front.
    queues: Vec<Mine>,
}

struct Mine {
    set: Weak<QueueSet>,
    id: u64,
    queue: Arc<ThreadQueue>,
}

/// Appends a record to the calling thread's queue in `set`, or does what the set's policy says;
/// whether it was appended.
///
/// `write` is the application's code: it may emit itself, and may panic, which passes through; the
/// record is then as good as never emitted.
pub(crate) fn push(
    set: &Arc<QueueSet>,
    schema: &Arc<Schema>,
    timestamp: i64,
    write: impl FnOnce(&mut RowWriter<'_>),
) -> bool {
    if is_suppressed() {
        return set.refuse(LossReason::Reentrant);
    }
    let mut write = Some(write);
    let pushed = LOCAL.try_with(|local| {
        let mut local = local.try_borrow_mut().ok()?;
        Some(local.push(set, schema, timestamp, write.take()?))
    });
    if let Ok(Some(pushed)) = pushed {
        return pushed;
    }
    // The thread is building another record, or its storage is gone already.
    write.is_some_and(|write| set.push_aside(schema, timestamp, write))
}

impl Local {
    const fn new() -> Self {
        Self {
            row: Vec::new(),
            queues: Vec::new(),
        }
    }

    fn push(
        &mut self,
        set: &Arc<QueueSet>,
        schema: &Arc<Schema>,
        timestamp: i64,
        write: impl FnOnce(&mut RowWriter<'_>),
    ) -> bool {
        self.row.clear();
        let mut row = RowWriter::new(&mut self.row);
        write(&mut row);
        if row.is_too_large() {
            self.row = Vec::new();
            return set.refuse(LossReason::TooLarge);
        }
        let pushed = match self.queues.first() {
            Some(mine) if mine.id == set.id() => mine.queue.push(set, schema, timestamp, &self.row),
            _ => {
                let queue = self.find(set);
                queue.push(set, schema, timestamp, &self.row)
            }
        };
        if self.row.capacity() > KEEP_BYTES {
            self.row = Vec::new();
        }
        pushed
    }

    /// Brings the thread's queue in this set to the front, making it if need be.
    #[cold]
    fn find(&mut self, set: &Arc<QueueSet>) -> Arc<ThreadQueue> {
        if let Some(at) = self.queues.iter().position(|mine| mine.id == set.id()) {
            self.queues.swap(0, at);
        } else {
            self.queues.retain(|mine| mine.set.strong_count() > 0);
            let mine = Mine {
                set: Arc::downgrade(set),
                id: set.id(),
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
        for mine in self.queues.drain(..) {
            if let Some(set) = mine.set.upgrade() {
                set.leave(mine.queue);
            }
        }
    }
}
