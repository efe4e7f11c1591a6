//! Rows of words into columns, many of one type at a time and column by column.

use super::builder::{PushError, Run, TIME_BYTES};
use super::column::Column;
use super::flat::Check;
use crate::record::intern::Interned;
use crate::record::row::INTERNED;
use crate::record::schema::{FieldType, Schema};
use crate::record::words::{Place, WordLayout, WordSpan, Words, text_words};

/// What is known of a type's rows of words.
#[derive(Debug)]
pub(super) struct WordRows {
    layout: WordLayout,
    /// Where the strings are.
    strings: Box<[Place]>,
    /// What to check, and where.
    checks: Box<[(Place, Check)]>,
    /// The ids of the strings of the rows being added, row by row.
    ids: Vec<u32>,
}

/// Adds rows of words of one type; see [`BatchBuilder::words`](super::BatchBuilder::words).
#[derive(Debug)]
pub struct WordRun<'a>(pub(super) Run<'a>);

impl WordRows {
    pub(super) fn new(schema: &Schema) -> Option<Self> {
        let layout = WordLayout::of(schema)?;
        let places = || layout.fields().iter().copied();
        let fields = || places().zip(schema.fields());
        Some(Self {
            strings: places().filter(|place| place.width.is_text()).collect(),
            checks: fields()
                .filter_map(|(place, field)| Some((place, Check::of(field.field_type())?)))
                .collect(),
            ids: Vec::new(),
            layout,
        })
    }
}

impl WordRun<'_> {
    /// Adds these rows; yields how many were added, and why the one behind them was not.
    ///
    /// The batch is then as it was before that one.
    pub fn extend(
        &mut self,
        words: &(impl Words + ?Sized),
        rows: &[WordSpan],
    ) -> (usize, Result<(), PushError>) {
        let run = &mut self.0;
        // What was added as bytes comes first.
        run.rows.flush(run.table);
        let Some(known) = &mut run.rows.words else {
            return (0, Err(PushError::Malformed));
        };
        known.ids.clear();
        let mut added = 0;
        let mut bytes = 0;
        let mut result = Ok(());
        for row in rows {
            if let Err(error) = known.take(words, row, run.strings, run.index) {
                result = Err(error);
                break;
            }
            added += 1;
            bytes += row.words * 8 + TIME_BYTES;
        }
        let rows = rows.get(..added).unwrap_or_default();
        let fields = run.table.schema.fields().iter();
        let mut string = 0;
        for ((column, field), place) in run
            .table
            .columns
            .iter_mut()
            .zip(fields)
            .zip(known.layout.fields())
        {
            if let Column::String(ids) = column {
                let of_column = known.ids.iter().skip(string);
                ids.extend(of_column.step_by(known.strings.len().max(1)).take(added));
                string += 1;
            } else {
                append(
                    column,
                    field.field_type(),
                    rows.iter().map(|row| place.bits(words, row.at)),
                );
            }
        }
        let times = rows.iter().map(|row| row.timestamp);
        run.table.timestamps.extend(times);
        *run.records = run.records.wrapping_add(added);
        *run.row_bytes = run.row_bytes.saturating_add(bytes);
        if let Some((number, order)) = &mut run.order {
            order.resize(*run.records, *number);
        }
        (added, result)
    }
}

impl WordRows {
    /// Checks a row, and finds the ids of its strings; what is refused leaves none behind.
    #[inline(always)]
    fn take(
        &mut self,
        words: &(impl Words + ?Sized),
        row: &WordSpan,
        strings: &mut super::StringTable,
        index: &mut super::string_index::StringIndex,
    ) -> Result<(), PushError> {
        for (place, check) in &self.checks {
            let bits = low_half(place.bits(words, row.at) & place.width.mask());
            if !check.allows(bits) {
                return Err(PushError::Malformed);
            }
        }
        let before = self.ids.len();
        let mut text_at = row.at.wrapping_add(self.layout.words());
        let end = row.at.wrapping_add(row.words);
        let mut ids = || {
            for place in &self.strings {
                let tag = low_half(place.bits(words, row.at));
                let id = if tag & INTERNED != 0 {
                    index.interned_id(Interned::from_number(tag & !INTERNED), strings)?
                } else {
                    let bytes = usize::try_from(tag).map_err(|_| PushError::Malformed)?;
                    let at = text_at;
                    text_at = at.wrapping_add(text_words(bytes));
                    if text_at > end {
                        return Err(PushError::Malformed);
                    }
                    index.id_of_words(words, at, tag, strings)?
                };
                self.ids.push(id);
            }
            if text_at == end {
                Ok(())
            } else {
                Err(PushError::Malformed)
            }
        };
        let result = ids();
        if result.is_err() {
            self.ids.truncate(before);
        }
        result
    }
}

fn low_half(word: u64) -> u32 {
    u32::try_from(word & u64::from(u32::MAX)).unwrap_or(0)
}

/// Appends values of a type to its column, of which the lowest bits count.
fn append(column: &mut Column, field_type: &FieldType, bits: impl ExactSizeIterator<Item = u64>) {
    match column {
        Column::Bool(values) => values.extend(bits.map(|bits| bits & 1 != 0)),
        Column::Char(values) => {
            values.extend(bits.map(|bits| char::from_u32(low_half(bits)).unwrap_or_default()));
        }
        Column::Enum(values) | Column::F32(values) => values.extend(bits.map(low_half)),
        Column::F64(values) => values.extend(bits),
        Column::Signed(values) => {
            let unused = 64 - field_type.integer_bits().unwrap_or(64);
            if unused == 0 {
                values.extend(bits.map(u64::cast_signed));
            } else {
                values.extend(bits.map(|bits| (bits << unused).cast_signed() >> unused));
            }
        }
        Column::Unsigned(values) => {
            let unused = 64 - field_type.integer_bits().unwrap_or(64);
            values.extend(bits.map(|bits| bits << unused >> unused));
        }
        // Strings are added by their ids; types with the others are not flat.
        Column::String(_)
        | Column::Bytes(_)
        | Column::List(_)
        | Column::Optional(_)
        | Column::Record(_) => {}
    }
}
