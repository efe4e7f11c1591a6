//! The unit of the times in a sender's records, and their conversion to nanoseconds.

use baler_common::number::to_usize;
use baler_common::record::{FieldType, Schema};

use super::chunk::{ChunkString, KiekerChunk};
use super::least_bytes;

/// The record that says the unit, and its fields.
const METADATA: &str = "kieker.common.record.misc.KiekerMetadataRecord";
const UNIT: &str = "timeUnit";
const OFFSET: &str = "timeOffset";

/// The names of all fields of Kieker's types that hold a point in time, in the sender's unit.
const TIMES: [&str; 3] = ["timestamp", "tin", "tout"];

/// A unit of time, as a constant of Java's `TimeUnit`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum TimeUnit {
    /// The unit of all times in Baler.
    #[default]
    Nanoseconds,
    /// 1,000 nanoseconds.
    Microseconds,
    /// 1,000 microseconds.
    Milliseconds,
    /// 1,000 milliseconds.
    Seconds,
    /// 60 seconds.
    Minutes,
    /// 60 minutes.
    Hours,
    /// 24 hours.
    Days,
}

impl TimeUnit {
    /// The names of the units in settings.
    pub const CHOICES: [(&str, Self); 11] = [
        ("ns", Self::Nanoseconds),
        ("us", Self::Microseconds),
        ("ms", Self::Milliseconds),
        ("s", Self::Seconds),
        ("nanoseconds", Self::Nanoseconds),
        ("microseconds", Self::Microseconds),
        ("milliseconds", Self::Milliseconds),
        ("seconds", Self::Seconds),
        ("minutes", Self::Minutes),
        ("hours", Self::Hours),
        ("days", Self::Days),
    ];

    /// Returns the unit with this name, in any case.
    pub fn of_name(name: &str) -> Option<Self> {
        let mut choices = Self::CHOICES.iter();
        let choice = choices.find(|(choice, _)| choice.eq_ignore_ascii_case(name));
        choice.map(|(_, unit)| *unit)
    }

    /// Returns the name of the constant in Java.
    pub fn name(self) -> &'static str {
        match self {
            Self::Nanoseconds => "NANOSECONDS",
            Self::Microseconds => "MICROSECONDS",
            Self::Milliseconds => "MILLISECONDS",
            Self::Seconds => "SECONDS",
            Self::Minutes => "MINUTES",
            Self::Hours => "HOURS",
            Self::Days => "DAYS",
        }
    }

    /// Returns a time of this unit in nanoseconds. Zero and negative times, such as -1 for none,
    /// stay. A time beyond the year 2262 becomes the last one that a record can have.
    pub fn nanos(self, time: i64) -> i64 {
        let nanos = match self {
            Self::Nanoseconds => 1,
            Self::Microseconds => 1_000,
            Self::Milliseconds => 1_000_000,
            Self::Seconds => 1_000_000_000,
            Self::Minutes => 60_000_000_000,
            Self::Hours => 3_600_000_000_000,
            Self::Days => 86_400_000_000_000,
        };
        match time {
            1.. => time.saturating_mul(nanos),
            _ => time,
        }
    }
}

/// The unit of a sender's times: that of its last metadata record, or that of a setting.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Times {
    pub(super) unit: TimeUnit,
    /// Whether metadata records do not change the unit.
    pub(super) is_fixed: bool,
}

impl Times {
    /// Converts the times of the chunk's last record to nanoseconds.
    ///
    /// A metadata record sets the unit of its own times and of all later ones. In the chunk it says
    /// nanoseconds. A unit that Java does not have counts as nanoseconds.
    #[inline]
    pub(super) fn convert(&mut self, chunk: &mut KiekerChunk, schema: &Schema) {
        let is_metadata = schema.name() == METADATA;
        if is_metadata || self.unit != TimeUnit::Nanoseconds {
            self.convert_record(chunk, schema, is_metadata);
        }
    }

    #[cold]
    fn convert_record(&mut self, chunk: &mut KiekerChunk, schema: &Schema, is_metadata: bool) {
        // The record was read by its schema, so every field is there.
        let Some((timestamp, fields)) = places(chunk, schema) else {
            debug_assert!(false, "a record without its fields");
            return;
        };
        if is_metadata {
            let place = |name| fields.iter().find(|it| it.0 == name).map(|it| it.1);
            let said = place(UNIT).and_then(|place| TimeUnit::of_name(chunk.string_at(place)?));
            let said = said.unwrap_or(TimeUnit::Nanoseconds);
            if !self.is_fixed {
                self.unit = said;
            }
            if let (Some(place), true) = (place(UNIT), said != TimeUnit::Nanoseconds) {
                let id = chunk.string_id(&mut ChunkString::new(TimeUnit::Nanoseconds.name()));
                chunk.replace(place, id.to_be_bytes());
            }
            if let Some(place) = place(OFFSET) {
                convert_time(chunk, place, said);
            }
        }
        let times = fields.iter().filter(|it| TIMES.contains(&it.0));
        for place in times.map(|it| it.1).chain([timestamp]) {
            convert_time(chunk, place, self.unit);
        }
    }
}

fn convert_time(chunk: &mut KiekerChunk, place: usize, unit: TimeUnit) {
    if let Some(time) = chunk.get(place) {
        let nanos = unit.nanos(i64::from_be_bytes(time));
        chunk.replace(place, nanos.to_be_bytes());
    }
}

/// Returns the place of the last record's logging timestamp in the chunk, and the names and places
/// of its strings and of its integers of 64 bits.
fn places<'a>(chunk: &KiekerChunk, schema: &'a Schema) -> Option<(usize, Vec<(&'a str, usize)>)> {
    let timestamp = chunk.last_record().checked_add(4)?;
    let mut place = timestamp.checked_add(8)?;
    let mut fields = Vec::new();
    for field in schema.fields() {
        let mut bytes = least_bytes(field.field_type())?;
        match field.field_type() {
            FieldType::I64 | FieldType::String => fields.push((field.name(), place)),
            FieldType::List(inner) => {
                let items = to_usize(u32::from_be_bytes(chunk.get(place)?));
                bytes = bytes.checked_add(items.checked_mul(least_bytes(inner)?)?)?;
            }
            _ => {}
        }
        place = place.checked_add(bytes)?;
    }
    Some((timestamp, fields))
}
