//! Files of the kernel, and their counters, which normally only grow.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The most bytes read of a file; machines with a thousand processors stay below.
const MAX_BYTES: u64 = 4 << 20;

/// Where the kernel's files are: `/`, or a folder of a test.
#[derive(Debug, Clone)]
pub(super) struct Root(PathBuf);

impl Root {
    pub(super) fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// Reads a file as text. The error names the file.
    pub(super) fn read(&self, path: &str) -> io::Result<String> {
        let read = |path: &Path| {
            let mut text = String::new();
            File::open(path)?
                .take(MAX_BYTES)
                .read_to_string(&mut text)?;
            Ok(text)
        };
        let path = self.0.join(path);
        read(&path).map_err(|error: io::Error| {
            io::Error::new(error.kind(), format!("{}: {error}", path.display()))
        })
    }

    /// Whether there is such a file or folder.
    pub(super) fn has(&self, path: &str) -> bool {
        self.0.join(path).exists()
    }
}

/// Returns the error for an unexpected form of one of the kernel's texts.
pub(super) fn malformed(file: &str, what: &str) -> io::Error {
    let shown: String = what.chars().take(80).collect();
    io::Error::new(ErrorKind::InvalidData, format!("{file}: {shown}"))
}

/// Returns the first numbers of a line; `None` if there are fewer, or one is not a number of 64
/// bits.
pub(super) fn numbers<const N: usize>(text: &str) -> Option<[u64; N]> {
    let mut words = text.split_ascii_whitespace();
    let mut all = [0; N];
    for number in &mut all {
        *number = words.next()?.parse().ok()?;
    }
    Some(all)
}

/// If a counter of 32 bits is lower than before, it has probably wrapped. This is the most that it
/// may have counted past its end; beyond this it was reset.
const WRAPPED_AT_MOST: u64 = 1 << 30;

/// Returns the growth of a counter; `None` if it was reset.
///
/// The kernel counts with 64 bits, but some drivers and all of its milliseconds use 32. A counter
/// that is lower than before and was near the end of 32 bits has wrapped.
fn growth(before: u64, now: u64) -> Option<u64> {
    if let Some(growth) = now.checked_sub(before) {
        return Some(growth);
    }
    let end = 1_u64 << 32;
    let left = end.checked_sub(before)?;
    let growth = left + now;
    (growth <= WRAPPED_AT_MOST).then_some(growth)
}

/// Returns the growth of all these counters; `None` if one of them was reset.
fn growths<const N: usize>(before: &[u64; N], now: &[u64; N]) -> Option<[u64; N]> {
    let mut all = [0; N];
    for ((growth_of, before), now) in all.iter_mut().zip(before).zip(now) {
        *growth_of = growth(*before, *now)?;
    }
    Some(all)
}

/// The counters of devices that come and go, such as disks.
#[derive(Debug)]
pub(super) struct Meters<const N: usize> {
    before: BTreeMap<String, Reading<N>>,
}

impl<const N: usize> Default for Meters<N> {
    fn default() -> Self {
        Self {
            before: BTreeMap::new(),
        }
    }
}

impl<const N: usize> Meters<N> {
    /// Returns the growth since the last step, and its time, by name.
    ///
    /// A device that is new, was away or was reset only sets its start values.
    pub(super) fn step(
        &mut self,
        at: Instant,
        now: BTreeMap<String, [u64; N]>,
    ) -> Vec<(String, [u64; N], Duration)> {
        self.before.retain(|name, _| now.contains_key(name));
        let mut all = Vec::new();
        for (name, counters) in now {
            let reading = Reading { at, counters };
            let before = self.before.insert(name.clone(), reading);
            if let Some((counted, time)) = before.and_then(|before| reading.since(&before)) {
                all.push((name, counted, time));
            }
        }
        all
    }
}

/// The values of counters, and their time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reading<const N: usize> {
    pub(super) at: Instant,
    pub(super) counters: [u64; N],
}

impl<const N: usize> Reading<N> {
    /// Returns the growth since the reading before, and its time; `None` if a counter was reset or
    /// no time has passed.
    pub(super) fn since(&self, before: &Self) -> Option<([u64; N], Duration)> {
        let time = self.at.checked_duration_since(before.at)?;
        let counted = growths(&before.counters, &self.counters)?;
        (!time.is_zero()).then_some((counted, time))
    }
}

/// Returns a rate per second.
pub(super) fn per_second(counted: u64, time: Duration) -> f64 {
    float(counted) / time.as_secs_f64()
}

/// Converts exactly up to 2^53, which no counter reaches between two samples.
pub(super) fn float(number: u64) -> f64 {
    number as f64
}

/// Converts KiB, in which the kernel gives sizes of memory.
pub(super) fn bytes(kibibytes: u64) -> u64 {
    kibibytes.saturating_mul(1_024)
}

/// Converts to a field of Kieker's records.
pub(super) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
