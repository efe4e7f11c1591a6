//! The folder of a record.

use std::collections::BTreeMap;

use baler_common::record::{Fingerprint, NO_TIMESTAMP, Schema};
use baler_common::transport::ProducerId;

use super::super::schema::fingerprint;
use super::settings::{ParquetSettings, TimePartition};

const NS_PER_HOUR: i64 = 3_600_000_000_000;

/// Stands for the missing value of a partition, in Hive and its successors.
const MISSING: &str = "__HIVE_DEFAULT_PARTITION__";

/// The most bytes of a type's name in the name of a folder; file systems allow 255.
const MAX_NAME_BYTES: usize = 200;

/// Names an open file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) fingerprint: Fingerprint,
    pub(super) producer: Option<ProducerId>,
    /// The hour since 1970; for days, the first hour of the day. `None` without a timestamp.
    pub(super) slot: Option<i64>,
}

impl Key {
    /// The folders, from the outermost.
    pub(super) fn folder(&self, schema: &Schema, settings: &ParquetSettings) -> Vec<String> {
        let version: String = fingerprint(schema).chars().take(16).collect();
        let mut folders = vec![
            folder_name(schema.name()),
            format!("schema_version={version}"),
        ];
        if settings.by_producer {
            let producer = self.producer.map(|producer| producer.to_string());
            let producer = producer.unwrap_or_else(|| MISSING.to_owned());
            folders.push(format!("chunk_producer={producer}"));
        }
        if let Some(unit) = settings.by_time {
            let day = self.slot.map(|hour| day(hour.div_euclid(24)));
            let hour = self.slot.map(|hour| format!("{:02}", hour.rem_euclid(24)));
            let name = |part: Option<String>| part.unwrap_or_else(|| MISSING.to_owned());
            folders.push(format!("logged_day={}", name(day)));
            if unit == TimePartition::Hour {
                folders.push(format!("logged_hour={}", name(hour)));
            }
        }
        folders
    }
}

/// The rows of each file, by their times, the oldest first.
pub(super) fn rows_by_key(
    base: Key,
    unit: TimePartition,
    timestamps: &[i64],
) -> Vec<(Key, Vec<u32>)> {
    let hours = match unit {
        TimePartition::Day => 24,
        TimePartition::Hour => 1,
    };
    let mut slots: BTreeMap<Option<i64>, Vec<u32>> = BTreeMap::new();
    for (row, time) in (0..).zip(timestamps) {
        let slot = time.div_euclid(NS_PER_HOUR * hours) * hours;
        let slot = (*time != NO_TIMESTAMP).then_some(slot);
        slots.entry(slot).or_default().push(row);
    }
    let slots = slots.into_iter();
    slots
        .map(|(slot, rows)| (Key { slot, ..base }, rows))
        .collect()
}

/// Converts a type's name to the name of a folder. The name is untrusted and must not lead out of
/// the folder. Readers ignore names that begin with a dot or an underscore.
fn folder_name(name: &str) -> String {
    let mut folder = String::new();
    for (position, byte) in name.bytes().enumerate() {
        let plain = byte.is_ascii_alphanumeric() || (position > 0 && b"._-".contains(&byte));
        if folder.len() + 3 > MAX_NAME_BYTES {
            break;
        }
        match plain {
            true => folder.push(char::from(byte)),
            false => folder.push_str(&format!("%{byte:02X}")),
        }
    }
    folder
}

/// A day, counted from 1970, as `year-month-day`.
fn day(days: i64) -> String {
    let (year, month, day) = baler_common::calendar::date(days);
    format!("{year:04}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests;
