//! The block to which the calling thread appends. It holds all data that a probe touches, and no
//! more.
//!
//! Two thread-locals share the work. `OPEN_BLOCK` is const-initialised and has no destructor, so that
//! reading it is a load relative to the thread's pointer. `OWNER` owns the block to which `OPEN_BLOCK`
//! points, and has a destructor, which empties `OPEN_BLOCK` first.
//!
//! # Why a pointer
//!
//! A `RefCell<Option<Arc<Block>>>` would be slower: every call would check the state of a
//! thread-local with a destructor, the flag of the cell and the `Option`.
//!
//! # Invariants
//!
//! 1. `OPEN_BLOCK.words` points to the words of the block in `OWNER`, or to words of a block without
//!    room. Only [`hold`] and [`let_go`] change the two; `let_go` empties `OPEN_BLOCK` first.
//! 2. The words of a block are never moved, resized or freed while an `Arc` of it lives.
//! 3. Code that runs while the words are borrowed calls neither foreign code nor one of these two
//!    functions. Neither the borrow nor the pointer leaves the functions that append.
//! 4. Every function that reads more of `OPEN_BLOCK` than its tag, or changes `OWNER`, does so while
//!    the thread is [`Inside`]. A signal handler that interrupts it finds the tag of no set.
//!
//! A handler may also interrupt a thread that has compared its tag but is not inside yet, and may
//! replace the block. Therefore the words are read only inside. They may then belong to another
//! controller's block. Such a block holds rows of both controllers until it is full. A row keeps
//! its meaning in any block.

#![expect(
    unsafe_code,
    reason = "two dereferences, whose invariants stand above: a checked cell costs a probe a tenth \
              of its instructions"
)]

use std::cell::{Cell, RefCell};
use std::marker::PhantomData;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{Ordering, compiler_fence};

use baler_common::record::Schema;

use super::block::CALL_WORDS;
use super::block::{self, Block};
use super::sync::AtomicU64;
use crate::clock::short_of;

/// The number of types in the block that the thread remembers by address.
const TYPES: usize = 8;

/// This bit marks the address of a type whose records are rows of words, so that it has another
/// slot.
pub(super) const FLAT: usize = 1;

/// Reserved: no set of queues and no call site has this tag.
const NO_TAG: u32 = 1 << 29;

/// As [`NO_TAG`], while the thread is inside.
const INSIDE: u32 = NO_TAG | 1;

/// The words of no thread's block. They never have room.
#[cfg(not(all(test, baler_loom)))]
const NO_WORDS: *const [AtomicU64] = {
    static FULL: [AtomicU64; 1] = [AtomicU64::new(block::SEALED)];
    ptr::from_ref(&FULL)
};

/// Loom's atomics cannot be made in a constant, and models have no signal handlers.
#[cfg(all(test, baler_loom))]
const NO_WORDS: *const [AtomicU64] = ptr::slice_from_raw_parts(ptr::dangling(), 0);

struct OpenBlock {
    /// The owner of the block: by [`short_of`], the key of a set of queues, or [`NO_TAG`], or
    /// [`INSIDE`].
    tag: Cell<u32>,
    /// The tag to use when the thread is not inside.
    outside_tag: Cell<u32>,
    words: Cell<*const [AtomicU64]>,
    /// Types by address, with their numbers in the block. The block keeps the types alive.
    types: [Cell<(usize, u8)>; TYPES],
}

/// Owns the block that `OPEN_BLOCK` points to.
struct BlockOwner(RefCell<Option<Arc<Block>>>);

thread_local! {
    static OPEN_BLOCK: OpenBlock = const {
        OpenBlock {
            tag: Cell::new(NO_TAG),
            outside_tag: Cell::new(NO_TAG),
            words: Cell::new(NO_WORDS),
            types: [const { Cell::new((0, 0)) }; TYPES],
        }
    };
    static OWNER: BlockOwner = const { BlockOwner(RefCell::new(None)) };
}

impl Drop for BlockOwner {
    fn drop(&mut self) {
        let _inside = Inside::enter();
        empty();
        drop(self.0.take());
    }
}

impl OpenBlock {
    /// From here on a signal handler does not touch the thread's block.
    #[inline(always)]
    fn enter(&self) {
        self.tag.set(INSIDE);
        // The handler runs on this thread, which sees its own writes in order.
        compiler_fence(Ordering::SeqCst);
    }

    /// From here on the thread's block belongs to this set again.
    #[inline(always)]
    fn leave(&self, tag: u32) {
        compiler_fence(Ordering::SeqCst);
        self.tag.set(tag);
    }

    /// Returns the slots where a type may be remembered, by its marked address. If another type has
    /// the first one, the next one is tried. If two types shared one slot, each of their records
    /// would be slow.
    #[inline(always)]
    fn type_slots(&self, address: usize) -> impl Iterator<Item = &Cell<(usize, u8)>> {
        let first = (address >> 4) ^ (address & FLAT);
        (0..TYPES).filter_map(move |offset| self.types.get((first + offset) % TYPES))
    }

    /// Returns the number of a type that is remembered.
    #[inline(always)]
    fn number_of(&self, address: usize) -> Option<u8> {
        let mut slots = self.type_slots(address);
        let slot = slots.find(|slot| slot.get().0 == address);
        slot.map(|slot| slot.get().1)
    }

    /// Remembers the number of a type.
    fn remember(&self, address: usize, number: u8) {
        let mut slots = self.type_slots(address);
        let usable = slots.find(|slot| [address, 0].contains(&slot.get().0));
        if let Some(slot) = usable.or_else(|| self.type_slots(address).next()) {
            slot.set((address, number));
        }
    }
}

/// Returns the address of a type with its mark.
#[inline(always)]
fn marked(schema: &Arc<Schema>, mark: usize) -> usize {
    Arc::as_ptr(schema).addr() | mark
}

/// While it lives, only its creator appends on this thread, so the creator may take locks and
/// allocate. A signal handler that interrupts it finds a thread that is inside.
#[derive(Debug)]
pub(crate) struct Inside(PhantomData<*const ()>);

impl Inside {
    /// Returns `None` if the thread is inside already.
    #[inline]
    pub(crate) fn enter() -> Option<Self> {
        OPEN_BLOCK.with(|open| {
            if open.tag.get() == INSIDE {
                return None;
            }
            open.enter();
            Some(Self(PhantomData))
        })
    }
}

impl Drop for Inside {
    #[inline]
    fn drop(&mut self) {
        OPEN_BLOCK.with(|open| open.leave(open.outside_tag.get()));
    }
}

/// From now on the thread appends to this block, which is in the set with this key. The caller must
/// be inside.
pub(super) fn hold(key: u64, block: Arc<Block>) {
    let_go();
    let words = ptr::from_ref(block.words());
    // If the storage that owns it is gone, the thread is about to end and uses no block.
    if OWNER.try_with(|owner| owner.0.replace(Some(block))).is_ok() {
        OPEN_BLOCK.with(|open| {
            open.words.set(words);
            open.outside_tag.set(short_of(key));
        });
    }
}

/// From now on the thread has no block. The caller must be inside.
pub(super) fn let_go() {
    empty();
    drop(OWNER.try_with(|owner| owner.0.take()));
}

/// From now on the thread calls `admit` before it appends. A signal handler may call this at any
/// time.
pub(crate) fn disown() {
    OPEN_BLOCK.with(|open| {
        open.outside_tag.set(NO_TAG);
        // A thread that is inside takes over `outside_tag` when it leaves.
        if open.tag.get() != INSIDE {
            open.tag.set(NO_TAG);
        }
    });
}

/// As [`let_go`], but frees nothing: for the child of a fork, whose block belongs to its parent.
#[cfg(unix)]
pub(crate) fn forget_block() {
    empty();
    OWNER
        .try_with(|owner| std::mem::forget(owner.0.take()))
        .ok();
}

fn empty() {
    OPEN_BLOCK.with(|open| {
        open.outside_tag.set(NO_TAG);
        open.words.set(NO_WORDS);
        open.types.iter().for_each(|known| known.set((0, 0)));
    });
}

/// Appends a call to the thread's block, if the block belongs to this tag and has room.
#[inline(always)]
pub(crate) fn append_call(tag: u32, call: impl FnOnce() -> [u64; CALL_WORDS]) -> bool {
    OPEN_BLOCK.with(|open| {
        if open.tag.get() != tag {
            return false;
        }
        open.enter();
        // SAFETY: by the first two invariants the words live, and by the others they do so until
        // the end of this function.
        let words = unsafe { &*open.words.get() };
        let appended = block::append_call(words, call);
        open.leave(tag);
        appended
    })
}

/// Appends a record to the thread's block, if the block belongs to the set with this key, has room
/// and knows the type.
#[inline]
pub(super) fn append_record(key: u64, schema: &Arc<Schema>, timestamp: i64, fields: &[u8]) -> bool {
    append_with(key, schema, 0, |words, number| {
        block::append_record(words, number, timestamp, fields)
    })
}

/// Appends to the words of the thread's block, if the block belongs to the set with this key and
/// knows the number of the type. `append` calls no foreign code.
#[inline(always)]
pub(super) fn append_with(
    key: u64,
    schema: &Arc<Schema>,
    mark: usize,
    append: impl FnOnce(&[AtomicU64], u8) -> bool,
) -> bool {
    let tag = short_of(key);
    // The block is looked up in a separate closure, which is small enough to be inlined.
    let entered = OPEN_BLOCK.with(|open| {
        if open.tag.get() != tag {
            return None;
        }
        open.enter();
        Some((open.words.get(), open.number_of(marked(schema, mark))))
    });
    let Some((words, number)) = entered else {
        return false;
    };
    let appended = number.is_some_and(|number| {
        // SAFETY: as above; the thread is inside until it leaves below.
        append(unsafe { &*words }, number)
    });
    OPEN_BLOCK.with(|open| open.leave(tag));
    appended
}

/// Remembers the number of a type in the thread's block, if the block belongs to the set with this
/// key.
#[cold]
pub(super) fn learn_type(key: u64, schema: &Arc<Schema>, mark: usize) -> bool {
    let Some(_inside) = Inside::enter() else {
        return false;
    };
    // No borrow may be held while the block allocates.
    let Ok(Some(block)) = OWNER.try_with(|owner| owner.0.borrow().clone()) else {
        return false;
    };
    let Some(number) = block.number_of(schema) else {
        return false;
    };
    OPEN_BLOCK.with(|open| {
        let is_it =
            open.outside_tag.get() == short_of(key) && ptr::eq(open.words.get(), block.words());
        if is_it {
            open.remember(marked(schema, mark), number);
        }
        is_it
    })
}
