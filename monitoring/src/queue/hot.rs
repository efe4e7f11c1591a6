//! The block to which the calling thread appends: what a probe touches, and nothing more.
//!
//! Two thread-locals share the work. `HOT` is const-initialised and has no destructor, so that
//! reading it is a load relative to the thread's pointer, without a check of its state. `HELD` owns
//! what `HOT` points to and has a destructor, which empties `HOT` first.
//!
//! # Why a pointer
//!
//! Reaching the block through a `RefCell<Option<Arc<Block>>>` instead costs the state of the
//! thread-local with a destructor, the flag of the cell and the `Option` on every call.
//!
//! # Invariants
//!
//! 1. `HOT.words` points to the words of the block in `HELD`, or to those of one without room.
//!    [`hold`] and [`let_go`] alone change the two, the latter emptying `HOT` before `HELD`.
//! 2. The words of a block are never moved, resized or freed while an `Arc` of it lives.
//! 3. Nothing that runs while the words are borrowed calls foreign code or one of these two
//!    functions: the borrow does not leave the functions that append, nor does the pointer.
//! 4. All that look at more of `HOT` than its tag, and all that change `HELD`, do so inside
//!    ([`Inside`]). A signal handler that interrupts one of them finds the tag of no set.
//!
//! The handler may interrupt its thread anywhere, also between two instructions that belong together.
//! Whoever has found its tag and is not inside yet may be interrupted by one that does everything,
//! lets the block go and holds another one: hence the words are looked at inside alone.
//! They may then be those of another controller's block, if the handler emitted to that: until it is
//! full, rows of the one come with those of the other. They say what they are wherever they lie.

#![expect(
    unsafe_code,
    reason = "one dereference, whose invariants stand above (a checked cell costs a probe a tenth \
              of its instructions), and one cast of memory that the system has cleared"
)]

use std::cell::{Cell, RefCell};
use std::marker::PhantomData;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{Ordering, compiler_fence};

use baler_common::record::{Schema, Width, WordLayout, WordSink, WordText};

#[cfg(feature = "enable")]
use super::block::CALL_WORDS;
use super::block::{self, Appended, Block, RowTime, Stamp};
use super::sync::AtomicU64;
use crate::clock::short_of;

/// How many types of the open block the thread remembers by their address.
const TYPES: usize = 8;

/// Set in the address of a type that was found to be one of words.
const OF_WORDS: usize = 1;

/// No set has this tag, and no call site that is switched off.
const NO_TAG: u32 = 1 << 29;

/// As [`NO_TAG`], while the thread is inside.
const INSIDE: u32 = NO_TAG | 1;

/// The words of no thread's block: whoever looks finds no room.
#[cfg(not(all(test, baler_loom)))]
const NO_WORDS: *const [AtomicU64] = {
    static FULL: [AtomicU64; 1] = [AtomicU64::new(block::SEALED)];
    ptr::from_ref(&FULL)
};

/// Loom's atomics cannot be made in a constant, and models have no signal handlers.
#[cfg(all(test, baler_loom))]
const NO_WORDS: *const [AtomicU64] = ptr::slice_from_raw_parts(ptr::dangling(), 0);

/// So many words of memory that the operating system has cleared: nothing is written to it before its
/// owner does, which is the moment at which a page is needed.
#[cfg(not(all(test, baler_loom)))]
pub(super) fn zeroed(words: usize) -> Box<[AtomicU64]> {
    if align_of::<u64>() != align_of::<AtomicU64>() {
        return std::iter::repeat_with(AtomicU64::default)
            .take(words)
            .collect();
    }
    let words = Box::into_raw(vec![0_u64; words].into_boxed_slice());
    // SAFETY: the pointer comes from a box. `AtomicU64` has the size and the bit validity of `u64`,
    // says its documentation, and it has its alignment.
    unsafe { Box::from_raw(words as *mut [AtomicU64]) }
}

/// Loom's atomics are more than their values.
#[cfg(all(test, baler_loom))]
pub(super) fn zeroed(words: usize) -> Box<[AtomicU64]> {
    std::iter::repeat_with(AtomicU64::default)
        .take(words)
        .collect()
}

struct Hot {
    /// Whose block it is: by [`short_of`], the key of a set of queues, or [`NO_TAG`], or [`INSIDE`].
    ///
    /// Call sites whose calls are not timed in ticks have a state that is never equal to it.
    tag: Cell<u32>,
    /// What the tag is when nobody is inside.
    owner: Cell<u32>,
    words: Cell<*const [AtomicU64]>,
    /// Where the next row goes: how many words of the block are in use.
    ///
    /// The block's first word says so, too, but whoever asked that would wait for it, and before it
    /// for the address of the block: two loads one after the other, and the next reading of the
    /// processor's counter waits for both. So it does not see that somebody else has sealed the
    /// block. Then it goes on until the block is full, and what it writes is not emitted.
    at: Cell<u16>,
    /// Types by address, with their numbers in the block, which keeps them alive.
    types: [Cell<(usize, u8)>; TYPES],
}

/// Owns the block that `HOT` points to.
struct Held(RefCell<Option<Arc<Block>>>);

thread_local! {
    static HOT: Hot = const {
        Hot {
            tag: Cell::new(NO_TAG),
            owner: Cell::new(NO_TAG),
            words: Cell::new(NO_WORDS),
            at: Cell::new(0),
            types: [const { Cell::new((0, 0)) }; TYPES],
        }
    };
    static HELD: Held = const { Held(RefCell::new(None)) };
}

impl Drop for Held {
    fn drop(&mut self) {
        let _inside = Inside::enter();
        empty();
        drop(self.0.take());
    }
}

impl Hot {
    /// From here on a signal handler leaves the thread's block alone.
    #[inline(always)]
    fn enter(&self) {
        self.tag.set(INSIDE);
        // The handler runs on this thread, to which the processor shows what it did in order.
        compiler_fence(Ordering::SeqCst);
    }

    /// From here on the thread's block is that of this one again.
    #[inline(always)]
    fn leave(&self, owner: u32) {
        compiler_fence(Ordering::SeqCst);
        self.tag.set(owner);
    }

    /// The number in the thread's block of the type with this address and mark, if it is known.
    #[inline(always)]
    fn number_of(&self, address: usize) -> Option<u8> {
        let (known, number) = self.types.get(slot_of(address)).map(Cell::get)?;
        (known == address).then_some(number)
    }
}

/// While it lives nothing is appended by its thread but by who made it, so that it may hold locks and
/// ask for memory on the way: whoever interrupts it finds a thread that is inside.
#[derive(Debug)]
pub(crate) struct Inside(PhantomData<*const ()>);

impl Inside {
    /// `None` if the thread is inside already.
    #[inline]
    pub(crate) fn enter() -> Option<Self> {
        HOT.with(|hot| {
            if hot.tag.get() == INSIDE {
                return None;
            }
            hot.enter();
            Some(Self(PhantomData))
        })
    }
}

impl Drop for Inside {
    #[inline]
    fn drop(&mut self) {
        HOT.with(|hot| hot.leave(hot.owner.get()));
    }
}

/// From now on the thread appends to this block, which is in the set with this key. To be called
/// inside.
pub(super) fn hold(key: u64, block: Arc<Block>) {
    let_go();
    let words = ptr::from_ref(block.words());
    let at = block::words_in_use(block.words());
    if block.words().is_empty() {
        return;
    }
    // Without the storage that owns it, the thread is about to end and uses no block.
    if HELD.try_with(|held| held.0.replace(Some(block))).is_ok() {
        HOT.with(|hot| {
            hot.words.set(words);
            hot.at.set(at);
            hot.owner.set(short_of(key));
        });
    }
}

/// From now on the thread has no block. To be called inside.
pub(super) fn let_go() {
    empty();
    drop(HELD.try_with(|held| held.0.take()));
}

/// From now on the thread asks before it appends. A signal handler may call it at any time.
pub(super) fn disown() {
    HOT.with(|hot| {
        hot.owner.set(NO_TAG);
        // Whoever is inside leaves by the owner.
        if hot.tag.get() != INSIDE {
            hot.tag.set(NO_TAG);
        }
    });
}

fn empty() {
    HOT.with(|hot| {
        hot.owner.set(NO_TAG);
        hot.words.set(NO_WORDS);
        hot.types.iter().for_each(|known| known.set((0, 0)));
    });
}

/// Appends a compact row to the thread's block, if that is one of the set with this tag, whose calls
/// are in ticks, and has room.
#[cfg(feature = "enable")]
#[inline(always)]
pub(crate) fn append_call_in_ticks<const N: usize>(
    tag: u32,
    call: impl FnOnce() -> [u64; N],
) -> bool {
    HOT.with(|hot| {
        if hot.tag.get() != tag {
            return false;
        }
        hot.enter();
        // SAFETY: by the first two invariants the words live, and by the others they do so until the
        // end.
        let words = unsafe { &*hot.words.get() };
        // SAFETY: a block has a first word, also the one without room.
        unsafe { std::hint::assert_unchecked(!words.is_empty()) };
        let next = block::append_words(words, hot.at.get(), call);
        if let Some(next) = next {
            hot.at.set(next);
        }
        hot.leave(tag);
        next.is_some()
    })
}

/// Appends a compact row, of which some words may be left over, to the thread's block, if that is one
/// of the set with this key and has room.
#[cfg(feature = "enable")]
pub(crate) fn append_call(key: u64, call: [u64; CALL_WORDS]) -> bool {
    inside(key, |hot| {
        // SAFETY: as above.
        let words = unsafe { &*hot.words.get() };
        let appended = block::append_compact(words, call);
        hot.at.set(block::words_in_use(words));
        appended
    })
    .unwrap_or(false)
}

/// Runs inside, if the thread's block is one of the set with this key.
#[inline(always)]
fn inside<T>(key: u64, run: impl FnOnce(&Hot) -> T) -> Option<T> {
    HOT.with(|hot| {
        let tag = short_of(key);
        if hot.tag.get() != tag {
            return None;
        }
        hot.enter();
        let result = run(hot);
        hot.leave(tag);
        Some(result)
    })
}

/// Appends a record to the thread's block, if that is one of the set with this key and has room,
/// and if its type is known there.
#[inline]
pub(super) fn append_fields(
    key: u64,
    schema: &Arc<Schema>,
    stamp: Stamp,
    fields: &[u8],
) -> Appended {
    let appended = inside(key, |hot| {
        let number = hot.number_of(Arc::as_ptr(schema).addr())?;
        // SAFETY: as above.
        let words = unsafe { &*hot.words.get() };
        let appended = block::append_fields(words, number, stamp, fields);
        hot.at.set(block::words_in_use(words));
        Some(appended)
    });
    appended.flatten().unwrap_or(Appended::No)
}

/// Appends a record of words to the thread's block, on the terms of [`append_fields`].
pub(super) struct Row<'a> {
    pub(super) key: u64,
    pub(super) schema: &'a Arc<Schema>,
    pub(super) time: RowTime,
}

impl WordSink for Row<'_> {
    type Output = Appended;

    #[inline(always)]
    fn put<const WORDS: usize, const TEXTS: usize>(
        self,
        texts: [WordText<'_>; TEXTS],
        words: impl FnOnce() -> [u64; WORDS],
    ) -> Appended {
        let address = Arc::as_ptr(self.schema).addr() | OF_WORDS;
        let tag = short_of(self.key);
        // Between two looks at the thread's own rather than within one: what is handed to `with` is
        // not inlined if it is much, and the record's words would go through memory.
        let entered = HOT.with(|hot| {
            if hot.tag.get() != tag {
                return None;
            }
            hot.enter();
            Some((hot.number_of(address), hot.words.get()))
        });
        let Some((number, block)) = entered else {
            return Appended::No;
        };
        let appended = number.map_or(Appended::No, |number| {
            // SAFETY: as above, for the thread is inside until it leaves below.
            let block = unsafe { &*block };
            let appended = block::append_row(block, number, self.time, texts, words);
            HOT.with(|hot| hot.at.set(block::words_in_use(block)));
            appended
        });
        HOT.with(|hot| hot.leave(tag));
        appended
    }
}

/// Remembers the number of a type for rows of words, if fields of these widths are those of the
/// schema.
#[cold]
pub(super) fn learn_words(key: u64, schema: &Arc<Schema>, widths: &[Width]) -> bool {
    WordLayout::is_of(schema, widths) && learn(key, schema, OF_WORDS)
}

/// Remembers the number of a type in the thread's block, if it has one of the set with this key.
#[cold]
pub(super) fn learn(key: u64, schema: &Arc<Schema>, mark: usize) -> bool {
    let Some(_inside) = Inside::enter() else {
        return false;
    };
    // Nothing stays borrowed while the block may allocate.
    let Ok(Some(block)) = HELD.try_with(|held| held.0.borrow().clone()) else {
        return false;
    };
    let Some(number) = block.number_of(schema) else {
        return false;
    };
    let address = Arc::as_ptr(schema).addr() | mark;
    HOT.with(|hot| {
        let is_it = hot.owner.get() == short_of(key) && ptr::eq(hot.words.get(), block.words());
        match hot.types.get(slot_of(address)) {
            Some(slot) if is_it => {
                slot.set((address, number));
                true
            }
            _ => false,
        }
    })
}

/// Where a type is remembered, with its mark; the other low bits of an address are alike in all.
const fn slot_of(address: usize) -> usize {
    ((address >> 4) ^ (address & OF_WORDS)) % TYPES
}
