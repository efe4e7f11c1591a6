//! Converts rows of words to columns, many rows of one type at a time and column by column.

use super::Table;
use super::error::PushError;
use super::string_index::StringIndex;
use crate::number::to_usize;
use crate::record::column::Column;
use crate::record::schema::{FieldType, Schema};
use crate::record::strings::StringTable;
use crate::record::words::{Place, WordLayout, WordRows, Words, low_half};

/// The size of a record's timestamp in the estimate, in bytes.
pub(super) const TIME_BYTES: usize = 8;

/// How to convert a type's rows of words.
#[derive(Debug)]
pub(super) struct WordsOfType {
    layout: WordLayout,
    /// The checks, and their fields.
    checks: Box<[(Place, Check)]>,
}

/// The allowed bits of a value.
#[derive(Debug, Clone, Copy)]
enum Check {
    /// 0 or 1.
    Bool,
    /// A Unicode scalar value.
    Char,
    /// Below the number of variants.
    Variant(usize),
}

impl Check {
    fn of(field_type: &FieldType) -> Option<Self> {
        match field_type {
            FieldType::Bool => Some(Self::Bool),
            FieldType::Char => Some(Self::Char),
            FieldType::Enum(enum_type) => Some(Self::Variant(enum_type.variants().len())),
            _ => None,
        }
    }

    /// Whether a value may have these bits.
    fn allows(self, bits: u32) -> bool {
        match self {
            Self::Bool => bits <= 1,
            Self::Char => char::from_u32(bits).is_some(),
            Self::Variant(variants) => usize::try_from(bits).is_ok_and(|number| number < variants),
        }
    }
}

/// Adds rows of words of one type; see [`BatchBuilder::words`](super::BatchBuilder::words).
#[derive(Debug)]
pub struct WordRun<'a> {
    pub(super) words: &'a WordsOfType,
    pub(super) table: &'a mut Table,
    /// The position of the table.
    pub(super) number: u32,
    /// The order of the records, if the batch also has records of other types.
    pub(super) order: Option<&'a mut Vec<u32>>,
    pub(super) strings: &'a mut StringTable,
    pub(super) index: &'a mut StringIndex,
    pub(super) records: &'a mut usize,
    pub(super) row_bytes: &'a mut usize,
}

impl WordsOfType {
    pub(super) fn new(schema: &Schema) -> Option<Self> {
        let layout = WordLayout::of(schema)?;
        let places = layout.fields().iter().copied();
        let fields = places.zip(schema.fields());
        Some(Self {
            checks: fields
                .filter_map(|(place, field)| Some((place, Check::of(field.field_type())?)))
                .collect(),
            layout,
        })
    }
}

impl WordRun<'_> {
    /// Adds these rows. Returns the number of added rows, and the error of the next row.
    ///
    /// `unix_ns` converts the time of a row to its timestamp. On error the batch keeps the rows
    /// added so far. It may have interned strings of rows that were not added.
    pub fn extend<W: Words + ?Sized>(
        &mut self,
        words: &W,
        rows: &WordRows<'_>,
        unix_ns: impl Fn(u64) -> i64,
    ) -> (usize, Result<(), PushError>) {
        let known = self.words;
        let Some(mut rows) = Rows::of(words, rows, known.layout.words()) else {
            return (0, Err(PushError::Malformed));
        };
        let mut result = rows.check(&known.checks);
        let before = self.table.timestamps.len();
        let places = || known.layout.fields().iter();
        // Go field by field, so that the properties of a field are looked up once.
        for (column, place) in self.table.columns.iter_mut().zip(places()) {
            if let Column::String(ids) = column {
                let added = rows.add_strings(*place, ids, (self.strings, self.index));
                result = added.and(result);
            }
        }
        let fields = self.table.schema.fields().iter().zip(places());
        for (column, (field, place)) in self.table.columns.iter_mut().zip(fields) {
            match column {
                Column::String(ids) => ids.truncate(before + rows.count),
                _ => rows.add_values(*place, column, field.field_type()),
            }
        }
        self.table
            .timestamps
            .extend(rows.each(rows.rows.time).map(unix_ns));
        *self.row_bytes += rows.bytes();
        *self.records = self.records.wrapping_add(rows.count);
        if let Some(order) = &mut self.order {
            order.resize(*self.records, self.number);
        }
        (rows.count, result)
    }
}

/// Rows with all words that their type needs.
struct Rows<'a, W: Words + ?Sized> {
    words: &'a W,
    rows: WordRows<'a>,
    /// The number of rows that count.
    count: usize,
}

impl<'a, W: Words + ?Sized> Rows<'a, W> {
    /// Returns these rows, if they lie within the words and each has `fields` words of fields.
    fn of(words: &'a W, rows: &WordRows<'a>, fields: usize) -> Option<Self> {
        let last = rows.starts.iter().copied().fold(0, u32::max);
        let last = usize::try_from(last).ok()?;
        let least = rows.head.checked_add(fields)?;
        let least = least.max(rows.time.checked_add(1)?);
        let is_there = rows.end <= words.all().len() && last.checked_add(least)? <= rows.end;
        (is_there || rows.starts.is_empty()).then_some(Self {
            words,
            rows: *rows,
            count: rows.starts.len(),
        })
    }

    /// Returns their size in a batch: their fields, texts and timestamps.
    fn bytes(&self) -> usize {
        let at = |row: usize| usize::try_from(*self.rows.starts.get(row)?).ok();
        let end = at(self.count).unwrap_or(self.rows.end);
        let start = at(0).unwrap_or(end);
        let heads = self.rows.head * self.count;
        // Rows may overlap. This is an estimate.
        end.saturating_sub(start + heads) * 8 + self.count * TIME_BYTES
    }

    /// Returns the word of each row at this position.
    #[inline(always)]
    fn each(&self, at: usize) -> impl Iterator<Item = u64> + use<'a, W> {
        let words = self.words.all();
        let starts = self.rows.starts.get(..self.count).unwrap_or_default();
        starts.iter().map(move |start| {
            let start = to_usize(*start);
            words.get(start.wrapping_add(at)).map_or(0, W::value)
        })
    }

    /// Returns the position of the word that holds this field.
    #[inline(always)]
    fn field(&self, place: Place) -> usize {
        self.rows.head.wrapping_add(place.word)
    }

    /// Ends the rows before the first malformed one.
    fn check(&mut self, checks: &[(Place, Check)]) -> Result<(), PushError> {
        let mut result = Ok(());
        for (place, check) in checks {
            let bits = |word: u64| low_half((word >> place.shift) & place.width.mask());
            let mut words = self.each(self.field(*place));
            if let Some(row) = words.position(|word| !check.allows(bits(word))) {
                self.count = row;
                result = Err(PushError::Malformed);
            }
        }
        result
    }

    /// Adds the ids of this field's strings. Ends the rows before the first one whose string is
    /// malformed, or does not fit.
    #[inline(never)]
    fn add_strings(
        &mut self,
        place: Place,
        ids: &mut Vec<u32>,
        (table, index): (&mut StringTable, &mut StringIndex),
    ) -> Result<(), PushError> {
        let before = ids.len();
        ids.resize(before + self.count, 0);
        let new = ids.get_mut(before..).unwrap_or_default();
        let each = self.each(self.field(place));
        for (row, (id, word)) in new.iter_mut().zip(each).enumerate() {
            let tag = low_half(word >> place.shift);
            *id = match index.id_of_tag(self.words, tag, table) {
                Ok(id) => id,
                Err(error) => {
                    self.count = row;
                    return Err(error);
                }
            };
        }
        Ok(())
    }

    /// Adds the values of a field that is not a string.
    #[inline(never)]
    fn add_values(&self, place: Place, column: &mut Column, field_type: &FieldType) {
        let words = self.each(self.field(place));
        column.extend_from_bits(field_type, words.map(|word| word >> place.shift));
    }
}

#[cfg(test)]
mod tests;
