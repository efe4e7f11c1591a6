//! Where the bytes of a KIKA/DFLT chunk went.

use super::frame::Frame;
use super::{HEAD_BYTES, TRAILER_BYTES, least_bytes};
use crate::container::decoder::{ColumnLayout, Layout};
use crate::record::{Column, FieldType, RecordBatch};

/// How the container writes everything: value after value.
const PLAIN: &str = "plain";

/// Counts bytes by column, although the container has rows.
///
/// The ids of class names are the order of types; the class names are among the strings.
pub(super) fn layout_of(chunk: &[u8], frame: &Frame<'_>, batch: &RecordBatch) -> Layout {
    let header_bytes = HEAD_BYTES.saturating_add(TRAILER_BYTES);
    let body_bytes = chunk.len().saturating_sub(header_bytes);
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
            note(field.name(), column_bytes(column, field.field_type()));
        }
        note("(timestamp)", table.len().saturating_mul(size_of::<i64>()));
    }
    Layout {
        header_bytes,
        stored_body_bytes: body_bytes,
        body_bytes,
        schema_bytes: 0,
        string_bytes: body_bytes.saturating_sub(frame.records.left()),
        order_bytes: batch.len().saturating_mul(size_of::<u32>()),
        columns,
    }
}

fn column_bytes(column: &Column, field_type: &FieldType) -> usize {
    let items = match (column, field_type) {
        (Column::List(list), FieldType::List(inner)) => column_bytes(&list.items, inner),
        _ => 0,
    };
    let least = least_bytes(field_type).unwrap_or(0);
    column.len().saturating_mul(least).saturating_add(items)
}
