//! This process, from `/proc/self`.

use std::io;

use baler_connector_kieker::types::UptimeRecord;

use super::proc::{Reading, bytes, malformed, numbers, per_second, signed};
use super::sensor::{Context, ProcessRecord, Sample, Sensor};

const STAT: &str = "proc/self/stat";
const STATUS: &str = "proc/self/status";
const UPTIME: &str = "proc/uptime";

/// Clock ticks of `/proc` in a second (`USER_HZ`): 100 on every architecture that Rust's standard
/// library has for Linux.
const TICKS_PER_SECOND: u64 = 100;

/// The process that monitors itself.
#[derive(Debug, Default)]
pub(super) struct Process {
    /// Minor faults, major faults, ticks in its own code, ticks in the kernel.
    before: Option<Reading<4>>,
}

impl Sensor for Process {
    fn sample(&mut self, context: &Context<'_>, out: &mut Vec<Sample>) -> io::Result<()> {
        let process_id = std::process::id();
        let (counters, started) = parse_stat(&context.root.read(STAT)?)?;
        if context.is_active("%JVM_UPTIME") {
            let uptime = parse_uptime(&context.root.read(UPTIME)?, started)?;
            out.push(Sample::Uptime(UptimeRecord {
                timestamp: context.unix_ns,
                hostname: context.hostname.to_owned(),
                // In the form of Java's names of virtual machines.
                vm_name: format!("{process_id}@{}", context.hostname),
                uptime_ms: signed(uptime),
            }));
        }
        let now = Reading {
            at: context.at,
            counters,
        };
        let before = self.before.replace(now);
        let Some((counted, time)) = before.and_then(|before| now.since(&before)) else {
            return Ok(());
        };
        let [minor, major, user, system] = counted.map(|counted| per_second(counted, time));
        let per_tick = per_second(1, std::time::Duration::from_secs(TICKS_PER_SECOND));
        let status = context.root.read(STATUS)?;
        out.push(Sample::Process(ProcessRecord {
            timestamp: context.unix_ns,
            hostname: context.hostname.to_owned(),
            process_id,
            user_utilization: user * per_tick,
            system_utilization: system * per_tick,
            resident_bytes: status_bytes(&status, "VmRSS:")?,
            peak_resident_bytes: status_bytes(&status, "VmHWM:")?,
            virtual_bytes: status_bytes(&status, "VmSize:")?,
            threads: status_field(&status, "Threads:")?,
            minor_faults_per_second: minor,
            major_faults_per_second: major,
        }));
        Ok(())
    }
}

/// Returns the counters, and the start of the process, in ticks since the start of the machine.
///
/// The name of the program stands in parentheses and may contain anything, even parentheses.
fn parse_stat(text: &str) -> io::Result<([u64; 4], u64)> {
    let fields = text.rsplit_once(')').map(|(_, rest)| {
        // state ppid pgrp session tty_nr tpgid flags, and then the wanted ones; tty_nr and tpgid
        // may be negative.
        let words: Vec<_> = rest.split_ascii_whitespace().skip(7).collect();
        words.join(" ")
    });
    let parse = |fields: String| {
        let [minor, _, major, _, user, system] = numbers(&fields)?;
        let started = fields.split(' ').nth(12)?.parse().ok()?;
        Some(([minor, major, user, system], started))
    };
    fields.and_then(parse).ok_or_else(|| malformed(STAT, text))
}

/// Returns how long the process has been running, in milliseconds.
fn parse_uptime(text: &str, started: u64) -> io::Result<u64> {
    let machine = text.split_ascii_whitespace().next();
    let seconds: Option<f64> = machine.and_then(|text| text.parse().ok());
    let machine = seconds.and_then(|it| std::time::Duration::try_from_secs_f64(it).ok());
    let machine = machine.ok_or_else(|| malformed(UPTIME, text))?;
    let started = u128::from(started) * u128::from(1_000 / TICKS_PER_SECOND);
    let running = machine.as_millis().saturating_sub(started);
    u64::try_from(running).map_err(|_| malformed(UPTIME, text))
}

/// Returns a size of memory of `/proc/PID/status`, in bytes.
pub(super) fn status_bytes(text: &str, name: &str) -> io::Result<u64> {
    status_field(text, name).map(bytes)
}

/// Returns a number of `/proc/PID/status`.
fn status_field(text: &str, name: &str) -> io::Result<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let number = line.and_then(numbers::<1>);
    let [number] = number.ok_or_else(|| malformed(STATUS, name))?;
    Ok(number)
}

#[cfg(test)]
mod tests;
