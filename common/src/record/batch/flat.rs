//! Rows of flat types: each field has one width once strings are ids.
//!
//! Rows are copied as they are, and turned into columns many at a time.

use super::Table;
use super::builder::PushError;
use super::column::Column;
use super::string_index::StringIndex;
use super::strings::StringTable;
use super::word_rows::WordsOfType;
use crate::record::intern::Interned;
use crate::record::row::{INTERNED, RowReader};
use crate::record::schema::{FieldType, Schema};
use crate::record::words::Width;

/// The most bytes of rows that wait to become columns; they fit into the first-level cache.
const STAGED_BYTES: usize = 8 << 10;

/// How many rows wait at first.
const FIRST_ROWS: usize = 16;

/// How many bytes the timestamp has that follows each waiting row.
const TIME_BYTES: usize = 8;

/// The rows of one type that are not columns yet.
#[derive(Debug)]
pub(super) struct FlatRows {
    /// How many bytes a row has once its strings are ids, and with its timestamp behind it.
    bytes: usize,
    timed_bytes: usize,
    /// Where each field is in a row.
    offsets: Box<[usize]>,
    /// Where the strings are.
    strings: Box<[usize]>,
    /// What is before each string, and after the last one.
    gaps: Box<[Gap]>,
    /// Whether any bytes are a row, but for the strings.
    pub(super) is_unchecked: bool,
    /// How rows of words become columns, if the type has such.
    pub(super) words: Option<WordsOfType>,
    /// The first `waiting` bytes are rows.
    rows: Vec<u8>,
    waiting: usize,
}

/// The fields between two strings.
#[derive(Debug, Default)]
struct Gap {
    bytes: usize,
    /// What to check, and where in the gap.
    checks: Vec<(usize, Check)>,
}

/// What the bytes of a value must be.
#[derive(Debug, Clone, Copy)]
pub(super) enum Check {
    /// 0 or 1.
    Bool,
    /// A Unicode scalar value.
    Char,
    /// Below the number of variants.
    Variant(usize),
}

impl FlatRows {
    /// For the rows of this type, if all its fields have one width each.
    pub(super) fn new(schema: &Schema) -> Option<Self> {
        let mut bytes = 0;
        let (mut offsets, mut strings, mut gaps) = (Vec::new(), Vec::new(), Vec::new());
        let mut gap = Gap::default();
        for field in schema.fields() {
            let width = match Width::of(field.field_type()) {
                Width::Varies => return None,
                width => width.bytes(),
            };
            offsets.push(bytes);
            if *field.field_type() == FieldType::String {
                strings.push(bytes);
                gaps.push(std::mem::take(&mut gap));
            } else {
                if let Some(check) = Check::of(field.field_type()) {
                    gap.checks.push((gap.bytes, check));
                }
                gap.bytes += width;
            }
            bytes += width;
        }
        gaps.push(gap);
        Some(Self {
            bytes,
            timed_bytes: bytes + TIME_BYTES,
            offsets: offsets.into(),
            strings: strings.into(),
            is_unchecked: gaps.iter().all(|gap| gap.checks.is_empty()),
            gaps: gaps.into(),
            words: WordsOfType::new(schema),
            rows: vec![0; FIRST_ROWS * (bytes + TIME_BYTES)],
            waiting: 0,
        })
    }

    /// Whether there is no room for another row before [`Self::make_room`].
    pub(super) fn is_full(&self) -> bool {
        self.rows.len() - self.waiting < self.timed_bytes
    }

    /// Adds a row; what is refused leaves nothing behind.
    ///
    /// # Errors
    ///
    /// See [`PushError`].
    #[inline(never)]
    pub(super) fn push(
        &mut self,
        row: &[u8],
        timestamp: i64,
        strings: &mut StringTable,
        index: &mut StringIndex,
    ) -> Result<(), PushError> {
        let end = self.waiting + self.timed_bytes;
        let slot = self.rows.get_mut(self.waiting..end);
        let slot = slot.and_then(<[u8]>::split_last_chunk_mut);
        let (fields, time) = slot.ok_or(PushError::Full)?;
        // Most rows of interned strings are copied at once; ids then take the place of handles.
        let is_copied = self.is_unchecked && row.len() == fields.len() && {
            fields.copy_from_slice(row);
            name_interned(fields, &self.strings, strings, index)?
        };
        if !is_copied {
            copy_by_gaps(fields, &self.gaps, row, strings, index)?;
        }
        *time = timestamp.to_le_bytes();
        self.waiting = end;
        Ok(())
    }

    /// Adds a row whose strings are ids already; `strings` is the number of strings in the batch.
    ///
    /// `write` writes the row where it stays. A copy would read several short writes at once, and
    /// the processor would wait until they have left its store buffer.
    ///
    /// # Errors
    ///
    /// See [`PushError`].
    #[inline]
    pub(super) fn push_ids<const BYTES: usize>(
        &mut self,
        write: impl FnOnce(&mut [u8; BYTES]),
        timestamp: i64,
        strings: usize,
    ) -> Result<(), PushError> {
        let end = self.waiting + self.timed_bytes;
        let slot = self.rows.get_mut(self.waiting..end);
        let slot = slot.and_then(<[u8]>::split_last_chunk_mut);
        let (fields, time) = slot.ok_or(PushError::Full)?;
        let fields: &mut [u8; BYTES] = fields.try_into().map_err(|_| PushError::Malformed)?;
        write(fields);
        for at in &self.strings {
            let id = fields.get(*at..).and_then(|rest| rest.first_chunk());
            let id = u32::from_le_bytes(*id.ok_or(PushError::Malformed)?);
            if usize::try_from(id).map_or(true, |id| id >= strings) {
                return Err(PushError::Malformed);
            }
        }
        *time = timestamp.to_le_bytes();
        self.waiting = end;
        Ok(())
    }

    /// Turns the rows into columns, and gets more memory if there is little.
    #[cold]
    pub(super) fn make_room(&mut self, table: &mut Table) {
        self.flush(table);
        if self.rows.len() < STAGED_BYTES {
            self.rows.resize(2 * self.rows.len(), 0);
        }
    }

    /// Turns the rows into columns of their table.
    pub(super) fn flush(&mut self, table: &mut Table) {
        let rows = self.rows.get(..self.waiting).unwrap_or_default();
        if rows.is_empty() {
            return;
        }
        let fields = table.schema.fields().iter().zip(&self.offsets);
        for (column, (field, offset)) in table.columns.iter_mut().zip(fields) {
            let values = Values {
                rows,
                stride: self.timed_bytes,
                offset: *offset,
            };
            values.append_to(column, field.field_type());
        }
        let times = Values {
            rows,
            stride: self.timed_bytes,
            offset: self.bytes,
        };
        table.timestamps.extend(times.each(i64::from_le_bytes));
        self.waiting = 0;
    }

    /// Forgets the rows, keeping the memory.
    pub(super) fn clear(&mut self) {
        self.waiting = 0;
    }
}

/// Puts ids in the place of the handles of interned strings; `false` when a string is not interned.
#[inline]
fn name_interned(
    row: &mut [u8],
    places: &[usize],
    strings: &mut StringTable,
    index: &mut StringIndex,
) -> Result<bool, PushError> {
    for at in places {
        let place = row.get_mut(*at..).and_then(|rest| rest.first_chunk_mut());
        let place = place.ok_or(PushError::Malformed)?;
        let tag = u32::from_le_bytes(*place);
        if tag & INTERNED == 0 {
            return Ok(false);
        }
        let id = index.interned_id(Interned::from_number(tag & !INTERNED), strings)?;
        *place = id.to_le_bytes();
    }
    Ok(true)
}

/// Copies a row; ids take the place of strings.
#[inline]
fn copy_by_gaps(
    mut fields: &mut [u8],
    gaps: &[Gap],
    mut row: &[u8],
    strings: &mut StringTable,
    index: &mut StringIndex,
) -> Result<(), PushError> {
    for gap in gaps {
        if gap.bytes > 0 {
            let (to, left) = std::mem::take(&mut fields)
                .split_at_mut_checked(gap.bytes)
                .ok_or(PushError::Malformed)?;
            let (from, behind) = row
                .split_at_checked(gap.bytes)
                .ok_or(PushError::Malformed)?;
            if !gap.checks.iter().all(|(at, check)| check.passes(from, *at)) {
                return Err(PushError::Malformed);
            }
            to.copy_from_slice(from);
            (fields, row) = (left, behind);
        }
        // Behind the last gap there is no string.
        let Some((to, left)) = std::mem::take(&mut fields).split_first_chunk_mut() else {
            break;
        };
        let (tag, behind) = row.split_first_chunk().ok_or(PushError::Malformed)?;
        let tag = u32::from_le_bytes(*tag);
        let id = if tag & INTERNED != 0 {
            row = behind;
            index.interned_id(Interned::from_number(tag & !INTERNED), strings)?
        } else {
            let bytes = usize::try_from(tag).map_err(|_| PushError::Malformed)?;
            let (text, behind) = behind.split_at_checked(bytes).ok_or(PushError::Malformed)?;
            row = behind;
            index.id(text, strings)?
        };
        *to = id.to_le_bytes();
        fields = left;
    }
    if row.is_empty() {
        Ok(())
    } else {
        Err(PushError::Malformed)
    }
}

impl Check {
    pub(super) fn of(field_type: &FieldType) -> Option<Self> {
        match field_type {
            FieldType::Bool => Some(Self::Bool),
            FieldType::Char => Some(Self::Char),
            FieldType::Enum(enum_type) => Some(Self::Variant(enum_type.variants().len())),
            _ => None,
        }
    }

    /// Whether a value stands there.
    fn passes(self, row: &[u8], at: usize) -> bool {
        let mut value = RowReader::new(row.get(at..).unwrap_or_default());
        match self {
            Self::Bool => value.u8().is_ok_and(|byte| self.allows(byte.into())),
            Self::Char | Self::Variant(_) => value.u32().is_ok_and(|bits| self.allows(bits)),
        }
    }

    /// Whether a value may have these bits.
    pub(super) fn allows(self, bits: u32) -> bool {
        match self {
            Self::Bool => bits <= 1,
            Self::Char => char::from_u32(bits).is_some(),
            Self::Variant(variants) => usize::try_from(bits).is_ok_and(|number| number < variants),
        }
    }
}

/// One field of many rows.
struct Values<'a> {
    rows: &'a [u8],
    stride: usize,
    offset: usize,
}

impl Values<'_> {
    /// Adds the values to the column of their field.
    fn append_to(&self, column: &mut Column, field_type: &FieldType) {
        match Width::of(field_type).bytes() {
            1 => column.extend_from_bits(field_type, self.each(|[byte]| byte.into())),
            2 => column.extend_from_bits(field_type, self.each(|it| u16::from_le_bytes(it).into())),
            4 => column.extend_from_bits(field_type, self.each(|it| u32::from_le_bytes(it).into())),
            _ => column.extend_from_bits(field_type, self.each(u64::from_le_bytes)),
        }
    }

    /// The value of each row.
    #[inline(always)]
    fn each<T, const BYTES: usize>(
        &self,
        value: impl Fn([u8; BYTES]) -> T,
    ) -> impl Iterator<Item = T> {
        let offset = self.offset;
        // Rows have room for the value: so the compiler does not check it in each row.
        let is_there = self.stride >= BYTES && offset <= self.stride - BYTES;
        let rows = if is_there { self.rows } else { &[] };
        rows.chunks_exact(self.stride).map(move |row| {
            let bytes = row.get(offset..).and_then(|rest| rest.first_chunk());
            value(bytes.copied().unwrap_or([0; BYTES]))
        })
    }
}
