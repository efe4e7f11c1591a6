//! The values of the fields of spans and events.

use std::fmt::{Debug, Write as _};

use baler_common::record::RowWriter;
use tracing_core::Field;
use tracing_core::field::Visit;

/// The value of a field.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) enum Attribute {
    /// Not recorded yet.
    #[default]
    Empty,
    Bool(bool),
    F64(f64),
    Signed(i64),
    Text(String),
    Unsigned(u64),
}

/// The type of a field, as its values show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Bool,
    F64,
    Signed,
    Text,
    Unsigned,
}

impl Attribute {
    /// Returns its kind, unless it is empty.
    pub(crate) const fn kind(&self) -> Option<Kind> {
        match self {
            Self::Empty => None,
            Self::Bool(_) => Some(Kind::Bool),
            Self::F64(_) => Some(Kind::F64),
            Self::Signed(_) => Some(Kind::Signed),
            Self::Text(_) => Some(Kind::Text),
            Self::Unsigned(_) => Some(Kind::Unsigned),
        }
    }

    /// Returns the value as text; empty if it is.
    pub(crate) fn to_text(&self) -> String {
        match self {
            Self::Empty => String::new(),
            Self::Bool(value) => value.to_string(),
            Self::F64(value) => value.to_string(),
            Self::Signed(value) => value.to_string(),
            Self::Text(text) => text.clone(),
            Self::Unsigned(value) => value.to_string(),
        }
    }

    /// Appends the value as one of this kind: its own kind, or text.
    fn write(&self, kind: Kind, row: &mut RowWriter<'_>) {
        if matches!(self, Self::Empty) {
            return row.none();
        }
        row.some();
        if kind == Kind::Text {
            return match self {
                Self::Text(text) => row.str(text),
                other => row.str(&other.to_text()),
            };
        }
        debug_assert_eq!(self.kind(), Some(kind), "the layout has room for the value");
        match self {
            Self::Bool(value) => row.bool(*value),
            Self::F64(value) => row.f64(*value),
            Self::Signed(value) => row.i64(*value),
            Self::Unsigned(value) => row.u64(*value),
            // If a text came here, the row would not follow its schema: the collector counts it.
            Self::Empty | Self::Text(_) => {}
        }
    }
}

/// Appends the values to a row, in the order of the layout's fields.
pub(crate) fn write(values: &[Attribute], kinds: &[Option<Kind>], row: &mut RowWriter<'_>) {
    for (value, kind) in values.iter().zip(kinds) {
        if let Some(kind) = kind {
            value.write(*kind, row);
        }
    }
}

/// Takes values by the positions of their fields.
#[derive(Debug, Default)]
pub(crate) struct Values(pub(crate) Vec<Attribute>);

impl Values {
    /// No values yet, for this number of fields.
    pub(crate) fn new(fields: usize) -> Self {
        Self(vec![Attribute::Empty; fields])
    }

    fn set(&mut self, field: &Field, value: Attribute) {
        if let Some(place) = self.0.get_mut(field.index()) {
            *place = value;
        }
    }
}

impl Visit for Values {
    fn record_bool(&mut self, field: &Field, value: bool) {
        self.set(field, Attribute::Bool(value));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let mut text = String::new();
        // The text that was written before an error is kept. `format!` would panic.
        if write!(text, "{value:?}").is_err() {
            text.push('…');
        }
        self.set(field, Attribute::Text(text));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.set(field, Attribute::F64(value));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.set(field, Attribute::Signed(value));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.set(field, Attribute::Text(value.to_owned()));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.set(field, Attribute::Unsigned(value));
    }
}
