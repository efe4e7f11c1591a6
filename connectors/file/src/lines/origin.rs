//! The place of a line, as fields of its record.

use baler_common::record::{Field, FieldType, RowWriter};

/// The place of a line, as fields of its record.
#[derive(Debug, Clone, Copy)]
pub struct Origin<'a> {
    /// The name under which the file is followed, whatever its name is after a rotation.
    pub file: &'a str,
    /// A checksum of the file's first line. It tells generations of a log apart.
    pub id: &'a str,
    /// The offset of the line, in decompressed bytes.
    pub offset: u64,
}

/// The fields of an [`Origin`].
pub(super) const ORIGIN: [&str; 3] = ["origin_file", "origin_id", "origin_offset"];

pub(crate) fn origin_fields() -> [Field; 3] {
    let [file, id, offset] = ORIGIN;
    [
        Field::new(file, FieldType::String),
        Field::new(id, FieldType::String),
        Field::new(offset, FieldType::U64),
    ]
}

pub(crate) fn write_origin(origin: &Origin<'_>, row: &mut RowWriter<'_>) {
    row.str(origin.file);
    row.str(origin.id);
    row.u64(origin.offset);
}
