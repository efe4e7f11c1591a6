//! Looking at memory before it is needed: a small batch that was filled a while ago is spread over many
//! short columns, and whoever waits for one after the other waits for most of the time.

use std::hint::select_unpredictable as select;

use crate::container::num::to_usize;
use crate::record::{Column, RecordBatch, StringKeys, StringTable};

/// Of longer columns the processor sees by itself what comes next.
const MOST_ROWS: usize = 256;

/// How many bytes come from memory at once, nearly everywhere.
const LINE_BYTES: usize = 64;

/// Looks at all of a small batch but the text of interned strings, which is seldom needed; what is returned means nothing, and needs to be kept, or
/// nothing would be looked at.
pub(in crate::container::native) fn look_at(batch: &RecordBatch) -> u64 {
    let strings = batch.strings();
    let has_few_strings = strings.len() <= MOST_ROWS;
    let mut seen = 0;
    if has_few_strings {
        seen ^= lines(strings.keys().unwrap_or_default(), |key| key);
        seen ^= lines(strings.ends(), u64::from);
    }
    for table in batch.tables() {
        if table.len() > MOST_ROWS {
            continue;
        }
        seen ^= lines(table.timestamps(), i64::cast_unsigned);
        for column in table.columns() {
            seen ^= match column {
                Column::Signed(values) => lines(values, i64::cast_unsigned),
                Column::Unsigned(values) | Column::F64(values) => lines(values, |value| value),
                Column::String(values) | Column::Enum(values) | Column::F32(values) => {
                    lines(values, u64::from)
                }
                _ => 0,
            };
        }
    }
    if has_few_strings {
        // Where a text is must be known first: keys and ends are on their way by now.
        seen ^= texts(strings);
    }
    seen
}

/// The first and the last byte of all strings that are no interned ones.
///
/// Which strings are cannot be foretold, so that nothing branches on it.
fn texts(strings: &StringTable) -> u64 {
    let text = strings.text().as_bytes();
    let byte = |at: u32| u64::from(text.get(to_usize(at.into())).copied().unwrap_or(0));
    let (mut start, mut seen) = (0, 0);
    for (end, key) in strings
        .ends()
        .iter()
        .zip(strings.keys().unwrap_or_default())
    {
        let is_named = StringKeys::interned(*key).is_some();
        seen ^= byte(select(is_named, 0, start));
        seen ^= byte(select(is_named, 0, end.wrapping_sub(1)));
        start = *end;
    }
    seen
}

/// A value of each line of memory.
fn lines<T: Copy>(values: &[T], number: impl Fn(T) -> u64) -> u64 {
    let values = values.iter().step_by(LINE_BYTES / size_of::<T>());
    values.fold(0, |seen, value| seen ^ number(*value))
}
