//! A short stand-in for a schema.

use std::fmt;

use super::field::Field;
use super::field_type::FieldType;

/// A 128-bit FNV-1a hash of a schema's canonical form.
///
/// It is good enough to find a cached projection, not to resist somebody who wants a collision:
/// caches compare the schemas too.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fingerprint(u128);

impl Fingerprint {
    pub(super) fn of(name: &str, fields: &[Field]) -> Self {
        let mut hash = Self(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d);
        hash.name(name);
        for field in fields {
            hash.name(&field.name);
            hash.byte(field.role.code());
            hash.field_type(&field.field_type);
        }
        hash
    }

    /// The hash as a number.
    pub const fn as_u128(self) -> u128 {
        self.0
    }

    fn byte(&mut self, byte: u8) {
        self.0 = (self.0 ^ u128::from(byte)).wrapping_mul(0x0100_0000_0000_0000_0000_013b);
    }

    /// Names end in a byte that UTF-8 never contains, so that `ab`, `c` differs from `a`, `bc`.
    fn name(&mut self, name: &str) {
        name.bytes().for_each(|byte| self.byte(byte));
        self.byte(0xff);
    }

    fn field_type(&mut self, field_type: &FieldType) {
        self.byte(field_type.code());
        match field_type {
            FieldType::Enum(enum_type) => {
                self.name(enum_type.name());
                enum_type
                    .variants()
                    .iter()
                    .for_each(|variant| self.name(variant));
                self.byte(0xfe);
            }
            FieldType::Optional(inner) | FieldType::List(inner) => self.field_type(inner),
            FieldType::Record(schema) => {
                schema
                    .fingerprint
                    .0
                    .to_le_bytes()
                    .into_iter()
                    .for_each(|byte| self.byte(byte));
            }
            _ => {}
        }
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}
