//! Cuts a KIKA/DFLT chunk into its parts, without reading the records, and measures them.

use baler_common::container::cursor::Cursor;
use baler_common::container::{ColumnLayout, DecodeError, DecodeErrorKind, Layout, Limits};
use baler_common::number::{to_u64, to_usize};
use baler_common::record::{Column, FieldType, RecordBatch};

use super::{FORMAT, HEAD_BYTES, MAGIC, STRING_MEMORY, TRAILER_BYTES, least_bytes};

/// A chunk, cut into its parts.
#[derive(Debug)]
pub(super) struct Frame<'a> {
    /// The records, with their offsets in the chunk.
    pub(super) records: Cursor<'a>,
    /// The strings by id.
    pub(super) strings: Vec<&'a str>,
}

impl<'a> Frame<'a> {
    /// Checks magic, format, lengths and string table.
    ///
    /// Bytes between the string table and the trailer are skipped, as Kieker's reader does. But a
    /// chunk without records must not have such bytes: a chunk that was cut off after a few zeros
    /// would otherwise pass as one without records.
    pub(super) fn cut(chunk: &'a [u8], limits: &Limits) -> Result<Self, DecodeError> {
        let mut head = Cursor::new(chunk);
        if chunk.len() > limits.chunk_bytes {
            return Err(head.over_limit("the chunk", to_u64(chunk.len()), limits.chunk_bytes));
        }
        let magic: [u8; 4] = head.array("the magic")?;
        if magic != MAGIC {
            let found = magic.to_vec();
            let kind = DecodeErrorKind::UnknownContainer { found };
            return Err(Cursor::new(chunk).error("the magic", kind));
        }
        let at = head.clone();
        let format: [u8; 4] = head.array("the body format")?;
        if format != FORMAT {
            let kind = DecodeErrorKind::Unknown {
                what: "the body format",
                number: u32::from_be_bytes(format).into(),
            };
            return Err(at.error("the body format", kind));
        }
        let Some(body_bytes) = head.left().checked_sub(TRAILER_BYTES) else {
            let kind = DecodeErrorKind::Ends {
                needed: TRAILER_BYTES,
                left: head.left(),
            };
            return Err(head.error(LENGTH, kind));
        };
        let mut body = head.split(body_bytes, LENGTH)?;
        let at = head.clone();
        let declared = u32::from_be_bytes(head.array(LENGTH)?);
        let Ok(records) = body.split(to_usize(declared), LENGTH) else {
            let kind = DecodeErrorKind::Length {
                declared: declared.into(),
                found: to_u64(body_bytes),
            };
            return Err(at.error(LENGTH, kind));
        };
        let strings = read_strings(&mut body, limits)?;
        if records.is_empty() {
            body.finish("the string table")?;
        }
        Ok(Self { records, strings })
    }
}

const LENGTH: &str = "the length of the records";

fn read_strings<'a>(table: &mut Cursor<'a>, limits: &Limits) -> Result<Vec<&'a str>, DecodeError> {
    const COUNT: &str = "the number of strings";
    let at = table.clone();
    let count = table.count(limits.strings, COUNT)?;
    // A string takes at least the one byte of its length.
    if count > table.left() {
        let kind = DecodeErrorKind::Ends {
            needed: count,
            left: table.left(),
        };
        return Err(at.error(COUNT, kind));
    }
    let memory = to_u64(count) * to_u64(STRING_MEMORY);
    if memory > to_u64(limits.decoded_bytes) {
        return Err(at.over_limit(COUNT, memory, limits.decoded_bytes));
    }
    let mut strings = Vec::with_capacity(count);
    for _ in 0..count {
        strings.push(table.text("a string")?);
    }
    Ok(strings)
}

/// The only encoding of the container: value after value.
const PLAIN: &str = "plain";

/// Counts bytes by column, although the container stores rows.
///
/// The ids of class names count as the order of types. The class names count as strings.
pub(super) fn layout_of(chunk: &[u8], frame: &Frame<'_>, batch: &RecordBatch) -> Layout {
    let header_bytes = HEAD_BYTES + TRAILER_BYTES;
    let body_bytes = chunk.len() - header_bytes;
    let mut columns = Vec::new();
    for table in batch.tables() {
        let mut note = |field: &str, bytes: usize| {
            columns.push(ColumnLayout {
                record: table.schema().name().into(),
                field: field.into(),
                encoding: PLAIN.into(),
                bytes,
            });
        };
        for (column, field) in table.columns().iter().zip(table.schema().fields()) {
            if let Some(bytes) = column_bytes(column, field.field_type()) {
                note(field.name(), bytes);
            }
        }
        note("(timestamp)", table.len() * size_of::<i64>());
    }
    Layout {
        header_bytes,
        stored_body_bytes: body_bytes,
        body_bytes,
        schema_bytes: 0,
        string_bytes: body_bytes - frame.records.left(),
        order_bytes: batch.len() * size_of::<u32>(),
        columns,
    }
}

/// Returns the bytes of a column; `None` if the container cannot hold its type.
fn column_bytes(column: &Column, field_type: &FieldType) -> Option<usize> {
    let items = match (column, field_type) {
        (Column::List(list), FieldType::List(inner)) => column_bytes(&list.items, inner)?,
        _ => 0,
    };
    Some(column.len() * least_bytes(field_type)? + items)
}
