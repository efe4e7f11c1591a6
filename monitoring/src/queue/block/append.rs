//! The owner's side of a block: rows after the last one, without a lock.

use super::super::barrier;
use super::super::sync::{AtomicU64, Ordering};
#[cfg(feature = "enable")]
use super::CALL_WORDS;
use super::{
    Extent, HEAD_WORDS, KIND_RECORD, OPEN, ROW, SEALED, SEALING, WORDS_IN_USE, record_words,
};

/// Appends a call, if there is room and the block was not sealed before, even by another thread: the
/// hot path of probes. `call` is asked once there is room.
///
/// Only the block's owner may call it.
#[cfg(feature = "enable")]
#[inline(always)]
pub(in super::super) fn append_call(
    words: &[AtomicU64],
    call: impl FnOnce() -> [u64; CALL_WORDS],
) -> bool {
    let Some(head) = words.first() else {
        return false;
    };
    let committed = head.load(Ordering::Relaxed);
    let at = words_in_use(committed);
    // `at` is so small that the sum cannot overflow.
    let slots = words.get(at..at.wrapping_add(CALL_WORDS));
    let Some(slots) = slots.and_then(<[_]>::first_chunk::<CALL_WORDS>) else {
        return false;
    };
    for (slot, word) in slots.iter().zip(call()) {
        slot.store(word, Ordering::Relaxed);
    }
    commit_exactly(words, committed.wrapping_add(ROW | CALL_WORDS as u64))
}

/// Appends a record whose type has this number, if there is room and the block was not sealed before,
/// even by another thread. Only the block's owner may call it.
pub(in super::super) fn append_record(
    words: &[AtomicU64],
    number: u8,
    timestamp: i64,
    fields: &[u8],
) -> bool {
    write_record(words, number, timestamp, fields)
        .is_some_and(|commit| commit_exactly(words, commit))
}

/// Writes a record after the last row, without committing it; the word to commit with.
fn write_record(words: &[AtomicU64], number: u8, timestamp: i64, fields: &[u8]) -> Option<u64> {
    let committed = words.first()?.load(Ordering::Relaxed);
    let needed = record_words(fields.len());
    let slots = words.get(words_in_use(committed)..)?.get(..needed)?;
    let ([header, time], slots) = slots.split_first_chunk()?;
    let length = u64::try_from(fields.len()).ok()?;
    header.store(
        KIND_RECORD | (u64::from(number) << 8) | (length << 32),
        Ordering::Relaxed,
    );
    time.store(timestamp.cast_unsigned(), Ordering::Relaxed);
    let (whole, rest) = fields.as_chunks::<8>();
    for (slot, bytes) in slots.iter().zip(whole) {
        slot.store(u64::from_le_bytes(*bytes), Ordering::Relaxed);
    }
    if let (false, Some(last)) = (rest.is_empty(), slots.last()) {
        let mut bytes = [0; 8];
        for (to, from) in bytes.iter_mut().zip(rest) {
            *to = *from;
        }
        last.store(u64::from_le_bytes(bytes), Ordering::Relaxed);
    }
    let needed = u64::try_from(needed).ok()?;
    Some(committed.wrapping_add(ROW).wrapping_add(needed))
}

/// How many words are in use; more than any block has if it is sealed.
#[inline(always)]
pub(in super::super) fn words_in_use(committed: u64) -> usize {
    usize::try_from(committed & WORDS_IN_USE).unwrap_or(usize::MAX)
}

/// Commits what was written, unless the block was sealed meanwhile; whether it was committed.
#[inline(always)]
pub(in super::super) fn commit_exactly(words: &[AtomicU64], commit: u64) -> bool {
    let Some(head @ [committed, sealed]) = words.first_chunk::<HEAD_WORDS>() else {
        return false;
    };
    committed.store(commit, Ordering::Release);
    // The thread that seals does the same in the opposite order, so that one of the two sees the
    // other.
    barrier::light();
    sealed.load(Ordering::Relaxed) == OPEN || settle(head, commit)
}

/// Whether the committed row is before the end of a block that another thread seals. The first of
/// the two threads to write the end decides it.
#[cold]
fn settle([committed, sealed]: &[AtomicU64; HEAD_WORDS], commit: u64) -> bool {
    // The commit has overwritten what keeps the owner from appending.
    committed.fetch_or(SEALED, Ordering::Relaxed);
    let end = match sealed.compare_exchange(SEALING, commit, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => commit,
        Err(end) => end,
    };
    Extent::of(commit).words <= Extent::of(end).words
}
