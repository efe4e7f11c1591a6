//! One number out of a row, without taking the rest apart.

use super::row::{INTERNED, RowEnds, RowReader};
use super::schema::{FieldType, Schema};
use super::words::Width;

/// Where an integer field is in the rows of one type: for who sorts rows before they are columns.
#[derive(Debug, Clone)]
pub struct RowNumber {
    /// The fields before it.
    before: Box<[FieldType]>,
    field_type: FieldType,
}

impl RowNumber {
    /// The first integer field with one of these names, if the type has one.
    pub fn find(schema: &Schema, names: &[&str]) -> Option<Self> {
        let fields = schema.fields();
        let at = fields.iter().position(|field| {
            names.contains(&field.name()) && field.field_type().integer_bits().is_some()
        })?;
        let (before, rest) = fields.split_at_checked(at)?;
        Some(Self {
            before: before
                .iter()
                .map(|field| field.field_type().clone())
                .collect(),
            field_type: rest.first()?.field_type().clone(),
        })
    }

    /// The field's bits in this row, narrower and signed numbers sign-extended; nothing when the
    /// row does not follow its schema.
    pub fn read(&self, row: &[u8]) -> Option<u64> {
        let mut row = RowReader::new(row);
        for field in &self.before {
            skip(field, &mut row).ok()?;
        }
        let bits = self.field_type.integer_bits()?;
        let mut number = [0; 8];
        let bytes = row.take(bits / 8).ok()?;
        number
            .iter_mut()
            .zip(bytes)
            .for_each(|(to, from)| *to = *from);
        let number = u64::from_le_bytes(number);
        let unused = 64 - bits;
        Some(match self.field_type {
            FieldType::U8 | FieldType::U16 | FieldType::U32 => number,
            _ => (((number << unused) as i64) >> unused) as u64,
        })
    }
}

/// Passes over one value; schemas bound the depth.
fn skip(field_type: &FieldType, row: &mut RowReader<'_>) -> Result<(), RowEnds> {
    let bytes = match field_type {
        FieldType::String => match row.u32()? {
            interned if interned & INTERNED != 0 => 0,
            length => length,
        },
        FieldType::Bytes => row.u32()?,
        FieldType::Optional(inner) => {
            if row.u8()? != 0 {
                skip(inner, row)?;
            }
            0
        }
        FieldType::List(inner) => {
            for _ in 0..row.u32()? {
                skip(inner, row)?;
            }
            0
        }
        FieldType::Record(schema) => {
            for field in schema.fields() {
                skip(field.field_type(), row)?;
            }
            0
        }
        flat => u32::try_from(Width::of(flat).bytes()).map_err(|_| RowEnds)?,
    };
    row.take(bytes).map(drop)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::record::{Field, Interned, RowWriter};

    fn schema() -> Schema {
        let inner = Schema::new("inner", vec![Field::new("a", FieldType::U16)]).unwrap();
        let fields = vec![
            Field::new("text", FieldType::String),
            Field::new("static", FieldType::String),
            Field::new("bytes", FieldType::Bytes),
            Field::new("maybe", FieldType::I8.optional()),
            Field::new("list", FieldType::F64.list()),
            Field::new("inner", FieldType::Record(Arc::new(inner))),
            Field::new("traceId", FieldType::I32),
            Field::new("after", FieldType::Bool),
        ];
        Schema::new("outer", fields).unwrap()
    }

    fn row(trace: i32) -> Vec<u8> {
        let mut out = Vec::new();
        let mut row = RowWriter::new(&mut out);
        row.str("some text");
        row.interned(Interned::leaked("a call site"));
        row.bytes(&[1, 2, 3]);
        row.some();
        row.i8(-1);
        row.list(2);
        row.f64(1.0);
        row.f64(2.0);
        row.u16(9);
        row.i32(trace);
        row.bool(true);
        out
    }

    #[test]
    fn number_is_found_behind_values_of_every_kind() {
        let number = RowNumber::find(&schema(), &["trace_id", "traceId"]).unwrap();
        assert_eq!(number.read(&row(77)), Some(77));
        assert_eq!(number.read(&row(-1)), Some(u64::MAX));
    }

    #[test]
    fn field_that_is_missing_or_no_integer_is_not_found() {
        assert!(RowNumber::find(&schema(), &["other"]).is_none());
        assert!(RowNumber::find(&schema(), &["text"]).is_none());
    }

    #[test]
    fn row_that_ends_early_has_no_number() {
        let number = RowNumber::find(&schema(), &["traceId"]).unwrap();
        let row = row(1);
        // The field after it is not looked at.
        for length in 0..row.len() - 1 {
            assert_eq!(number.read(&row[..length]), None, "{length}");
        }
    }
}
