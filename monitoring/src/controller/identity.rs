//! Who this process is.

use std::collections::hash_map::RandomState;
use std::fs;
use std::hash::BuildHasher;

use baler_common::transport::{Epoch, ProducerId};

use crate::clock::Clock;

/// Random bits: the standard library seeds its hash maps from the operating system. The child of a fork
/// inherits the seed; the number of its process distinguishes the two.
pub(crate) fn random() -> u64 {
    RandomState::new().hash_one(std::process::id())
}

/// The machine's name, or `localhost` where it cannot be found out.
pub(super) fn hostname() -> Box<str> {
    let told = fs::read_to_string("/proc/sys/kernel/hostname")
        .or_else(|_| fs::read_to_string("/etc/hostname"))
        .ok()
        .or_else(|| std::env::var("HOSTNAME").ok())
        .or_else(|| std::env::var("COMPUTERNAME").ok());
    match told.as_deref().map(str::trim) {
        Some(name) if !name.is_empty() => name.into(),
        _ => "localhost".into(),
    }
}

/// A producer that no other process has: from host, process and randomness.
pub(super) fn random_producer(hostname: &str) -> ProducerId {
    let half = || u128::from(RandomState::new().hash_one((hostname, std::process::id())));
    ProducerId::new((half() << 64) | half())
}

/// A life that begins now.
pub(super) fn new_epoch(clock: &Clock) -> Epoch {
    let [a, b, c, d, ..] = random().to_le_bytes();
    Epoch {
        start_unix_ns: u64::try_from(clock.unix_ns()).unwrap_or(0),
        random: u32::from_le_bytes([a, b, c, d]),
    }
}
