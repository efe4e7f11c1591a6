//! The owner's side of a block: rows behind the last one, without a lock.

use baler_common::record::{WordText, text_words, words_of_text};

use super::super::barrier;
use super::super::prefetch::prefetch_to_write;
use super::super::sync::{AtomicU64, Ordering};
use super::super::texts;
#[cfg(feature = "enable")]
use super::row::{CALL_WORDS, DURATION_WORDS, EVENT_WORDS, compact_words};
use super::row::{
    FIELDS_HEADER_WORDS, KIND_FIELDS, KIND_FIELDS_TICKS, KIND_WORDS, KIND_WORDS_TICKS,
    KIND_WORDS_TIMED, RowTime, Stamp, TIMED_HEADER_WORDS, words_for,
};
use super::{Extent, HEAD_WORDS, OPEN, ROW, SEALED, SEALING, WORDS_IN_USE};

/// What became of a row whose owner asked for room without a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Appended {
    Yes,
    /// The block was sealed: the row was not emitted.
    Late,
    /// There is no room, or it is not known whether there is.
    No,
}

/// How many words of a block are in use; more than it has if it is sealed.
pub(in super::super) fn words_in_use(words: &[AtomicU64]) -> u16 {
    let committed = words.first().map(|head| head.load(Ordering::Relaxed));
    u16::try_from(committed.unwrap_or(SEALED) & WORDS_IN_USE).unwrap_or(u16::MAX)
}

/// Appends a row of so many words behind those that are in use, if there is room: the hot path of
/// probes. How many are in use now.
///
/// Only the block's owner may call it. `row` is asked once there is room.
#[cfg(feature = "enable")]
#[inline]
pub(in super::super) fn append_words<const N: usize>(
    words: &[AtomicU64],
    in_use: u16,
    row: impl FnOnce() -> [u64; N],
) -> Option<u16> {
    let head = words.first()?;
    let at = usize::from(in_use);
    // One comparison: `at` is so small that the sum cannot overflow.
    let slots = words.get(at..at.wrapping_add(N))?.first_chunk::<N>()?;
    prefetch_to_write(words, at);
    for (slot, word) in slots.iter().zip(row()) {
        slot.store(word, Ordering::Relaxed);
    }
    // One instruction: nobody else adds to it, and who seals the block meanwhile is not heeded either
    // way.
    let committed = head.load(Ordering::Relaxed);
    head.store(committed.wrapping_add(ROW | N as u64), Ordering::Release);
    Some(in_use.wrapping_add(const { row_words::<N>() }))
}

/// As many as a row has.
#[cfg(feature = "enable")]
#[expect(clippy::cast_possible_truncation, reason = "no block has so many")]
const fn row_words<const N: usize>() -> u16 {
    assert!(N < super::WORDS_BELOW);
    N as u16
}

/// Appends a compact row, of which some words may be left over, if there is room.
///
/// Only the block's owner may call it.
#[cfg(feature = "enable")]
pub(in super::super) fn append_compact(words: &[AtomicU64], row: [u64; CALL_WORDS]) -> bool {
    let [header, first, second, third, _] = row;
    let in_use = words_in_use(words);
    let next = match compact_words(header) {
        Some(DURATION_WORDS) => append_words(words, in_use, || [header, first, second]),
        Some(EVENT_WORDS) => append_words(words, in_use, || [header, first, second, third]),
        _ => append_words(words, in_use, || row),
    };
    next.is_some()
}

/// The words before the rows.
type Head = [AtomicU64; HEAD_WORDS];

/// Writes a row with fields behind the last one, without committing it; the word to commit with.
fn write_fields<'a>(
    words: &'a [AtomicU64],
    number: u8,
    stamp: Stamp,
    fields: &[u8],
) -> Option<(&'a Head, u64)> {
    let head: &Head = words.first_chunk()?;
    let [committed, _] = head;
    let committed = committed.load(Ordering::Relaxed);
    let at = usize::try_from(committed & WORDS_IN_USE).ok()?;
    let needed = words_for(fields.len());
    let slots = words.get(at..)?.get(..needed)?;
    let (kind, time) = match stamp {
        Stamp::UnixNs(time) => (KIND_FIELDS, time.cast_unsigned()),
        Stamp::Ticks(ticks) => (KIND_FIELDS_TICKS, ticks),
    };
    let ([header, stamp], slots) = slots.split_first_chunk()?;
    let length = u64::try_from(fields.len()).ok()?;
    header.store(
        kind | (u64::from(number) << 8) | (length << 32),
        Ordering::Relaxed,
    );
    stamp.store(time, Ordering::Relaxed);
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
    Some((head, committed.wrapping_add(ROW).wrapping_add(needed)))
}

/// Appends a row with fields whose type has this number, and says truly whether it came before the
/// block was sealed. Only the block's owner may call it.
pub(in super::super) fn append_fields(
    words: &[AtomicU64],
    number: u8,
    stamp: Stamp,
    fields: &[u8],
) -> Appended {
    match write_fields(words, number, stamp, fields) {
        Some((head, commit)) => commit_truly(head, commit),
        None => Appended::No,
    }
}

/// Writes a row of words behind the last one, without committing it; the word to commit with.
#[inline(always)]
fn write_words<'a, const WORDS: usize, const TEXTS: usize>(
    words: &'a [AtomicU64],
    number: u8,
    time: RowTime,
    texts: [WordText<'_>; TEXTS],
    fields: impl FnOnce() -> [u64; WORDS],
) -> Option<(&'a Head, u64)> {
    let head: &Head = words.first_chunk()?;
    let [committed, _] = head;
    let committed = committed.load(Ordering::Relaxed);
    let at = usize::try_from(committed & WORDS_IN_USE).ok()?;
    let (kind, time, head_words) = match time {
        RowTime::Own(Stamp::UnixNs(time)) => {
            let time = Some(time.cast_unsigned());
            (KIND_WORDS, time, FIELDS_HEADER_WORDS)
        }
        RowTime::Own(Stamp::Ticks(ticks)) => (KIND_WORDS_TICKS, Some(ticks), FIELDS_HEADER_WORDS),
        RowTime::Field(word) => {
            let word = u64::try_from(word).ok()?;
            (KIND_WORDS_TIMED | word << 16, None, TIMED_HEADER_WORDS)
        }
    };
    let texts_at = at.wrapping_add(head_words + WORDS);
    let mut end = texts_at;
    let mut places = [0; TEXTS];
    for (text, place) in texts.iter().zip(&mut places) {
        *place = texts::place(words, at, text.text(), end);
        if *place == end {
            // No text is so long that the sum of so few could overflow.
            end = end.wrapping_add(text_words(text.text().len()));
        }
    }
    prefetch_to_write(words, at);
    let slots = words.get(at..end)?;
    let needed = u64::try_from(slots.len()).ok()?;
    let (header, mut slots) = slots.split_first()?;
    let mut fields = fields();
    for (text, place) in texts.iter().zip(places) {
        if !text.place(&mut fields, place) {
            return None;
        }
    }
    header.store(
        kind | (u64::from(number) << 8) | (needed << 32),
        Ordering::Relaxed,
    );
    if let Some(time) = time {
        let (slot, behind) = slots.split_first()?;
        slot.store(time, Ordering::Relaxed);
        slots = behind;
    }
    for (slot, word) in slots.first_chunk::<WORDS>()?.iter().zip(fields) {
        slot.store(word, Ordering::Relaxed);
    }
    for (text, place) in texts.iter().zip(places) {
        if place >= texts_at {
            write_text(words.get(place..)?, text.text());
        }
    }
    Some((head, committed.wrapping_add(ROW).wrapping_add(needed)))
}

/// Writes a text that is not in the block; there is room for it.
#[inline(never)]
fn write_text(slots: &[AtomicU64], text: &str) {
    for (slot, word) in slots.iter().zip(words_of_text(text)) {
        slot.store(word, Ordering::Relaxed);
    }
}

/// Appends a row of words whose type has this number, and says truly whether it came before the
/// block was sealed. Only the block's owner may call it.
#[inline(always)]
pub(in super::super) fn append_row<const WORDS: usize, const TEXTS: usize>(
    words: &[AtomicU64],
    number: u8,
    time: RowTime,
    texts: [WordText<'_>; TEXTS],
    fields: impl FnOnce() -> [u64; WORDS],
) -> Appended {
    match write_words(words, number, time, texts, fields) {
        Some((head, commit)) => commit_truly(head, commit),
        None => Appended::No,
    }
}

/// Commits what was written, unless the block was sealed meanwhile.
#[inline(always)]
fn commit_truly(head: &Head, commit: u64) -> Appended {
    let [committed, sealed] = head;
    committed.store(commit, Ordering::Release);
    // Who seals does the same in the opposite order, so one of the two sees the other.
    // Probes tell nobody whether their record was taken and do without this.
    barrier::light();
    if sealed.load(Ordering::Relaxed) == OPEN {
        Appended::Yes
    } else {
        settle(head, commit)
    }
}

/// Whether what was committed is before the end of a block that somebody else seals: the first of the
/// two to say where that is decides it.
#[cold]
fn settle([committed, sealed]: &Head, commit: u64) -> Appended {
    // The commit has overwritten what keeps the owner from appending.
    committed.fetch_or(SEALED, Ordering::Relaxed);
    let end = match sealed.compare_exchange(SEALING, commit, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => commit,
        Err(end) => end,
    };
    if Extent::of(commit).words <= Extent::of(end).words {
        Appended::Yes
    } else {
        Appended::Late
    }
}
