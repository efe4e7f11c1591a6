//! The figures of the process itself.

use std::fs;
use std::time::SystemTime;

use baler_rig::cpu::process_cpu_time;

use super::exposition::Exposition;
use super::metric;

/// Adds the figures of the process; those that the operating system does not tell are absent.
pub(super) fn expose(exposition: &mut Exposition, started: SystemTime) {
    exposition.set(&metric::CPU_SECONDS, &[], process_cpu_time());
    if let Some(bytes) = resident_bytes() {
        exposition.set(&metric::RESIDENT_BYTES, &[], bytes);
    }
    // One of them is the listing's own.
    if let Ok(entries) = fs::read_dir("/proc/self/fd") {
        exposition.set(&metric::OPEN_FDS, &[], entries.count().saturating_sub(1));
    }
    if let Ok(since) = started.duration_since(SystemTime::UNIX_EPOCH) {
        exposition.set(&metric::START_TIME, &[], since);
    }
}

/// Resident memory, as Linux tells it.
fn resident_bytes() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1_024)
}
