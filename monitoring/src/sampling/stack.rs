//! The stack of operations of one thread, which a sampler reads while the thread goes on.
//!
//! One thread writes, a sampler reads meanwhile, and neither waits for the other (a sequence lock,
//! as in `probe/aggregate/cell.rs`): the owner makes `sequence` odd before it changes the rest, and
//! even again afterwards. A reader whose two looks at `sequence` differ has seen a torn stack, and
//! tries again.

use baler_common::number::to_usize;

use crate::queue::sync::{AtomicU32, Ordering, fence};

/// The number of operations that are published. Deeper ones are only counted.
pub(crate) const DEPTH: usize = if cfg!(all(test, baler_loom)) { 2 } else { 64 };

/// How often a reader looks again at a stack that was torn.
const LOOKS: usize = if cfg!(all(test, baler_loom)) { 2 } else { 4 };

/// The open calls of one thread, as handles of their sites' signatures. It is never freed, but reused.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct PublishedStack {
    /// Odd while the owner changes the rest.
    sequence: AtomicU32,
    /// The choice of sampled sites to which the content belongs. A call that began under another
    /// choice may be missing.
    choice: AtomicU32,
    /// The number of the owning thread.
    thread: AtomicU32,
    depth: AtomicU32,
    operations: [AtomicU32; DEPTH],
}

/// A stack as a reader has seen it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SeenStack {
    pub(crate) thread: u32,
    /// The number of open calls.
    pub(crate) depth: u32,
    /// Their operations, the outermost first; at most [`DEPTH`].
    pub(crate) operations: Vec<u32>,
}

impl PublishedStack {
    /// Returns an empty stack.
    pub(crate) fn new() -> Self {
        Self {
            sequence: AtomicU32::new(0),
            choice: AtomicU32::new(0),
            thread: AtomicU32::new(0),
            depth: AtomicU32::new(0),
            operations: std::array::from_fn(|_| AtomicU32::new(0)),
        }
    }

    /// Empties it for a new owner.
    pub(crate) fn start(&self, thread: u32) {
        self.change(|| {
            self.thread.store(thread, Ordering::Relaxed);
            self.depth.store(0, Ordering::Relaxed);
        });
    }

    /// Begins a call. Only the owner may call it.
    pub(crate) fn push(&self, choice: u32, operation: u32) {
        self.change(|| {
            let mut depth = self.depth.load(Ordering::Relaxed);
            if self.choice.load(Ordering::Relaxed) != choice {
                self.choice.store(choice, Ordering::Relaxed);
                depth = 0;
            }
            if let Some(slot) = self.operations.get(index(depth)) {
                slot.store(operation, Ordering::Relaxed);
            }
            self.depth.store(depth + 1, Ordering::Relaxed);
        });
    }

    /// Ends a call, and all calls above it, which were not ended (a forgotten guard). Does nothing
    /// if the call is not on the stack, because its site was not sampled when it began. Only the
    /// owner may call it.
    pub(crate) fn pop(&self, operation: u32) {
        let depth = self.depth.load(Ordering::Relaxed);
        let left = match self.operations.get(..index(depth)) {
            Some(open) => open
                .iter()
                .rposition(|open| open.load(Ordering::Relaxed) == operation),
            // Too deep for names.
            None => index(depth).checked_sub(1),
        };
        if let Some(left) = left.and_then(|left| u32::try_from(left).ok()) {
            self.change(|| self.depth.store(left, Ordering::Relaxed));
        }
    }

    /// Changes the content as the owner. Does nothing in a signal handler that interrupts a change.
    fn change(&self, change: impl FnOnce()) {
        // Only the owner writes, so a load and a store are as good as an atomic addition.
        let sequence = self.sequence.load(Ordering::Relaxed);
        if sequence & 1 != 0 {
            return;
        }
        let odd = sequence.wrapping_add(1);
        self.sequence.store(odd, Ordering::Relaxed);
        fence(Ordering::Release);
        change();
        self.sequence.store(odd.wrapping_add(1), Ordering::Release);
    }

    /// Reads the stack into `seen`, which is empty if the thread is in no call of this choice.
    /// Returns the number of torn reads, and whether the last one was whole.
    pub(crate) fn look(&self, choice: u32, seen: &mut SeenStack) -> (u64, bool) {
        let mut torn = 0;
        for _ in 0..LOOKS {
            let sequence = self.sequence.load(Ordering::Acquire);
            seen.thread = self.thread.load(Ordering::Relaxed);
            seen.depth = self.depth.load(Ordering::Relaxed);
            if self.choice.load(Ordering::Relaxed) != choice {
                seen.depth = 0;
            }
            seen.operations.clear();
            let open = self.operations.iter().take(index(seen.depth));
            seen.operations
                .extend(open.map(|open| open.load(Ordering::Relaxed)));
            fence(Ordering::Acquire);
            if sequence & 1 == 0 && self.sequence.load(Ordering::Relaxed) == sequence {
                return (torn, true);
            }
            torn += 1;
            std::hint::spin_loop();
        }
        (torn, false)
    }
}

fn index(depth: u32) -> usize {
    to_usize(depth)
}

#[cfg(test)]
#[cfg(baler_loom)]
mod models;
#[cfg(test)]
#[cfg(not(baler_loom))]
mod tests;
