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
mod tests;
