//! The published stacks of all threads.

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard};

use baler_common::mutex::lock;

use super::stack::PublishedStack;
use crate::queue::Inside;

/// Stacks are never freed, so that a thread may keep a plain reference to its own. New threads get
/// the stacks of ended ones. There are as many as threads were in sampled operations at once.
static STACKS: Mutex<Stacks> = Mutex::new(Stacks {
    all: Vec::new(),
    free: Vec::new(),
    threads: 0,
});

/// The number of the present choice of sampled sites.
static CHOICE: AtomicU32 = AtomicU32::new(0);

struct Stacks {
    all: Vec<&'static PublishedStack>,
    /// Without an owner.
    free: Vec<&'static PublishedStack>,
    /// The number of threads that had a stack.
    threads: u32,
}

/// Gives the thread's stack back when the thread ends.
struct StackOwner(RefCell<Option<&'static PublishedStack>>);

thread_local! {
    /// Without a destructor, so that reading it needs no check. Emptied when the thread ends.
    static HERE: Cell<Option<&'static PublishedStack>> = const { Cell::new(None) };
    static OWNER: StackOwner = const { StackOwner(RefCell::new(None)) };
}

impl Drop for StackOwner {
    fn drop(&mut self) {
        let _inside = Inside::enter();
        HERE.set(None);
        if let Some(stack) = self.0.take() {
            stack.start(0);
            lock(&STACKS).free.push(stack);
        }
    }
}

/// Publishes that this thread begins a call of the operation with this handle, if its site is
/// sampled; returns whether it is.
pub(crate) fn enter(sampled_operation: impl FnOnce() -> Option<u32>) -> bool {
    // Before the state of the site, which is set before the choice. So no call of a site that is no
    // longer sampled belongs to the new choice.
    let choice = CHOICE.load(Ordering::Acquire);
    let Some(operation) = sampled_operation() else {
        return false;
    };
    if let Some(stack) = HERE.get().or_else(own_stack) {
        stack.push(choice, operation);
    }
    true
}

/// Publishes that this thread ends a call of the operation with this handle, if its begin was
/// published.
pub(crate) fn leave(operation: impl FnOnce() -> u32) {
    if let Some(stack) = HERE.get() {
        stack.pop(operation());
    }
}

/// From now on other sites are sampled. Calls in progress are no longer seen: the end of a call
/// whose site is no longer sampled need not be published.
pub(crate) fn choose_anew() {
    CHOICE.fetch_add(1, Ordering::Release);
}

/// Returns the present choice of sites, and all stacks.
pub(super) fn stacks() -> (u32, Vec<&'static PublishedStack>) {
    let _inside = Inside::enter();
    (CHOICE.load(Ordering::Relaxed), lock(&STACKS).all.clone())
}

/// Gives this thread a stack. A thread that is inside, or about to end, gets none.
#[cold]
fn own_stack() -> Option<&'static PublishedStack> {
    let _inside = Inside::enter()?;
    let own = |owner: &StackOwner| {
        let mut stacks = lock(&STACKS);
        let stack = stacks.free.pop().unwrap_or_else(|| {
            let stack: &'static PublishedStack = Box::leak(Box::new(PublishedStack::new()));
            stacks.all.push(stack);
            stack
        });
        stacks.threads = stacks.threads.wrapping_add(1);
        stack.start(stacks.threads);
        owner.0.replace(Some(stack));
        HERE.set(Some(stack));
        stack
    };
    OWNER.try_with(own).ok()
}

/// While it lives, no other thread can get a stack.
#[cfg(unix)]
pub(crate) struct StacksHold(MutexGuard<'static, Stacks>);

/// The caller must be inside.
#[cfg(unix)]
pub(crate) fn hold_stacks() -> StacksHold {
    StacksHold(lock(&STACKS))
}

#[cfg(unix)]
impl StacksHold {
    /// In the child of a fork: forgets all stacks, whose threads do not exist here, and frees
    /// nothing.
    pub(crate) fn forget(&mut self) {
        std::mem::forget(std::mem::take(&mut self.0.all));
        std::mem::forget(std::mem::take(&mut self.0.free));
        HERE.set(None);
        let forget = |owner: &StackOwner| *owner.0.borrow_mut() = None;
        OWNER.try_with(forget).ok();
    }
}

#[cfg(test)]
#[cfg(not(baler_loom))]
mod tests;
