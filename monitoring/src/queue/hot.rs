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
//! 1. `HOT.words` points to the words of the block in `HELD`, or `HOT.words` is empty.
//!    [`hold`] and [`let_go`] alone change the two, the latter emptying `HOT` before `HELD`.
//! 2. The words of a block are never moved, resized or freed while an `Arc` of it lives.
//! 3. Nothing that runs while the words are borrowed calls foreign code or one of these two
//!    functions: the borrow does not leave the functions that append, nor does the pointer.

#![expect(
    unsafe_code,
    reason = "one dereference, whose invariants stand above (a checked cell costs a probe a tenth \
              of its instructions), and one cast of memory that the system has cleared"
)]

use std::cell::{Cell, RefCell};
use std::ptr;
use std::sync::Arc;

use baler_common::record::{Schema, Width, WordLayout, WordSink};

#[cfg(feature = "enable")]
use super::block::CALL_WORDS;
use super::block::{self, Appended, Block, Stamp};
use super::sync::AtomicU64;
use crate::clock::{is_in_ticks, tag_of};

/// How many types of the open block the thread remembers by their address.
const TYPES: usize = 8;

/// Set in the address of a type that was found to be one of words.
const OF_WORDS: usize = 1;

/// No set has this key, and it is not what is told when nothing is recorded.
const NOBODY: u64 = u64::MAX;

/// No set has this tag, and no call site that is switched off.
const NO_TAG: u32 = 1;

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
    /// Whose block it is: the key of a set of queues, or [`NOBODY`].
    key: Cell<u64>,
    /// The tag of this key if its calls are timed in ticks, else [`NO_TAG`].
    tag: Cell<u32>,
    words: Cell<*const [AtomicU64]>,
    /// Types by address, with their numbers in the block, which keeps them alive.
    types: [Cell<(usize, u8)>; TYPES],
}

/// Owns the block that `HOT` points to.
struct Held(RefCell<Option<Arc<Block>>>);

thread_local! {
    static HOT: Hot = const {
        Hot {
            key: Cell::new(NOBODY),
            tag: Cell::new(NO_TAG),
            words: Cell::new(ptr::slice_from_raw_parts(ptr::null(), 0)),
            types: [const { Cell::new((0, 0)) }; TYPES],
        }
    };
    static HELD: Held = const { Held(RefCell::new(None)) };
}

impl Drop for Held {
    fn drop(&mut self) {
        empty();
    }
}

/// From now on the thread appends to this block, which is in the set with this key.
pub(super) fn hold(key: u64, block: Arc<Block>) {
    let_go();
    let words = ptr::from_ref(block.words());
    if block.words().is_empty() {
        return;
    }
    // Without the storage that owns it, the thread is about to end and uses no block.
    if HELD.try_with(|held| held.0.replace(Some(block))).is_ok() {
        HOT.with(|hot| {
            hot.words.set(words);
            hot.key.set(key);
            hot.tag.set(if is_in_ticks(key) {
                tag_of(key)
            } else {
                NO_TAG
            });
        });
    }
}

/// From now on the thread has no block.
pub(super) fn let_go() {
    empty();
    drop(HELD.try_with(|held| held.0.take()));
}

fn empty() {
    HOT.with(|hot| {
        hot.key.set(NOBODY);
        hot.tag.set(NO_TAG);
        hot.words.set(ptr::slice_from_raw_parts(ptr::null(), 0));
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
        // SAFETY: the tags are equal, hence `HOT` was filled by `hold` and not emptied since, and
        // by the first two invariants the words live; by the third one they do so until the end.
        let words = unsafe { &*hot.words.get() };
        // SAFETY: a block has a first word.
        unsafe { std::hint::assert_unchecked(!words.is_empty()) };
        block::append_words(words, call)
    })
}

/// Appends a compact row, of which some words may be left over, to the thread's block, if that is one
/// of the set with this key and has room.
#[cfg(feature = "enable")]
pub(crate) fn append_call(key: u64, call: [u64; CALL_WORDS]) -> bool {
    HOT.with(|hot| {
        // SAFETY: as above.
        hot.key.get() == key && block::append_compact(unsafe { &*hot.words.get() }, call)
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
    let Some((block, number)) = known_in(key, Arc::as_ptr(schema).addr()) else {
        return Appended::No;
    };
    // SAFETY: as above; what was found is not kept beyond this call.
    block::append_fields(unsafe { &*block }, number, stamp, fields)
}

/// Appends a record of words to the thread's block, on the terms of [`append_fields`].
pub(super) struct Row<'a> {
    pub(super) key: u64,
    pub(super) schema: &'a Arc<Schema>,
    pub(super) stamp: Stamp,
}

impl WordSink for Row<'_> {
    type Output = Appended;

    #[inline(always)]
    fn put<const WORDS: usize, const TEXTS: usize>(
        self,
        words: [u64; WORDS],
        texts: [&str; TEXTS],
    ) -> Appended {
        let address = Arc::as_ptr(self.schema).addr() | OF_WORDS;
        let Some((block, number)) = known_in(self.key, address) else {
            return Appended::No;
        };
        // SAFETY: as above; what was found is not kept beyond this call.
        let block = unsafe { &*block };
        block::append_row(block, number, self.stamp, words, texts)
    }
}

/// The words of the thread's block, if that is one of the set with this key, and the number in it of
/// the type with this address and mark, if it is known.
///
/// So little that it is a part of its caller, to whom the compiler then says where the thread's
/// storage is.
#[inline(always)]
fn known_in(key: u64, address: usize) -> Option<(*const [AtomicU64], u8)> {
    HOT.with(|hot| {
        let (known, number) = hot.types.get(slot_of(address)).map(Cell::get)?;
        (hot.key.get() == key && known == address).then(|| (hot.words.get(), number))
    })
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
    // Nothing stays borrowed while the block may allocate.
    let Ok(Some(block)) = HELD.try_with(|held| held.0.borrow().clone()) else {
        return false;
    };
    let Some(number) = block.number_of(schema) else {
        return false;
    };
    let address = Arc::as_ptr(schema).addr() | mark;
    HOT.with(|hot| {
        let is_it = hot.key.get() == key && ptr::eq(hot.words.get(), block.words());
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
