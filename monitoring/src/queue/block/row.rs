//! What a row of a block is: the words before its fields, and what they say.

use std::sync::Arc;

use baler_common::record::Schema;

/// The words of a call: header, trace, tin, tout, eoi and ess. No other compact row has more.
#[cfg(feature = "enable")]
pub(crate) const CALL_WORDS: usize = 5;

/// The words of a duration: header, tin, tout.
#[cfg(feature = "enable")]
pub(crate) const DURATION_WORDS: usize = 3;

/// The words of an event: header, trace, time, order index.
#[cfg(feature = "enable")]
pub(super) const EVENT_WORDS: usize = 4;

/// In the lowest bits of a header, what the row is. Those of compact rows are odd, so that the
/// header is known not to be 0.
pub(crate) const KIND: u64 = 0x0f;
#[cfg(feature = "enable")]
pub(crate) const KIND_CALL: u64 = 1;
pub(super) const KIND_FIELDS: u64 = 2;
pub(super) const KIND_FIELDS_TICKS: u64 = 3;
pub(super) const KIND_WORDS: u64 = 4;
pub(super) const KIND_WORDS_TICKS: u64 = 6;
/// The row's time is one of its fields; the third byte says in which word.
pub(super) const KIND_WORDS_TIMED: u64 = 8;
#[cfg(feature = "enable")]
pub(crate) const KIND_DURATION: u64 = 5;
#[cfg(feature = "enable")]
pub(crate) const KIND_TRACE: u64 = 7;
#[cfg(feature = "enable")]
pub(crate) const KIND_BEFORE: u64 = 9;
#[cfg(feature = "enable")]
pub(crate) const KIND_AFTER: u64 = 11;

/// Added to the kind of a row that began or ended by a clock in nanoseconds rather than ticks; the
/// times of calls and durations have a mark of their own.
#[cfg(feature = "enable")]
pub(crate) const TIN_UNIX_NS: u64 = 0x10;
#[cfg(feature = "enable")]
pub(crate) const TOUT_UNIX_NS: u64 = 0x20;

/// Header and time of a row with fields, as bytes or as words.
pub(super) const FIELDS_HEADER_WORDS: usize = 2;

/// The header of a row of words whose time is among its fields.
pub(super) const TIMED_HEADER_WORDS: usize = 1;

/// When a record with fields was logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stamp {
    /// Nanoseconds since the Unix epoch, or `NO_TIMESTAMP`.
    UnixNs(i64),
    /// Ticks of the processor's counter, which the collector converts.
    Ticks(u64),
}

/// When a row of words was logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum RowTime {
    /// The row says so by itself.
    Own(Stamp),
    /// The word of this number among its fields says so.
    Field(usize),
}

/// How many words a compact row with this header has; `None` for a row with fields.
#[cfg(feature = "enable")]
pub(super) const fn compact_words(header: u64) -> Option<usize> {
    match header & KIND {
        KIND_CALL | KIND_TRACE => Some(CALL_WORDS),
        KIND_DURATION => Some(DURATION_WORDS),
        KIND_BEFORE | KIND_AFTER => Some(EVENT_WORDS),
        _ => None,
    }
}

/// A row on its way into a block.
#[derive(Debug, Clone, Copy)]
pub(crate) enum RowRef<'a> {
    /// A call, as a probe writes it, or another compact row with words left over.
    #[cfg(feature = "enable")]
    Call([u64; CALL_WORDS]),
    /// A record as a row of the schema.
    Fields {
        schema: &'a Arc<Schema>,
        stamp: Stamp,
        fields: &'a [u8],
    },
}

/// A row as it lies in a block.
#[derive(Debug)]
pub(crate) enum Stored<'a> {
    #[cfg(feature = "enable")]
    Call([u64; CALL_WORDS]),
    Fields {
        schema: &'a Arc<Schema>,
        stamp: Stamp,
        fields: &'a [u8],
    },
}

/// How many words of a block a row with so many bytes of fields takes.
pub(in super::super) fn words_for(fields: usize) -> usize {
    fields.div_ceil(8).saturating_add(FIELDS_HEADER_WORDS)
}
