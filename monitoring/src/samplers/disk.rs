//! Disks, from `/proc/diskstats` and `/sys/block`.

use std::collections::BTreeMap;
use std::io;

use baler_connector_kieker::types::DiskUsageRecord;

use super::proc::{Meters, float, malformed, numbers, per_second};
use super::sensor::{Context, Sample, Sensor};

const FILE: &str = "proc/diskstats";

/// The kernel counts in sectors of 512 bytes, whatever sectors the disk has.
const SECTOR_BYTES: f64 = 512.0;

/// Reads, merged reads, sectors, milliseconds; the same for writes; requests in flight,
/// milliseconds busy, and these weighted by the requests in flight.
const COLUMNS: usize = 11;

/// The work of each disk since the last sample. Partitions, loop devices and memory disks do not
/// count.
#[derive(Debug, Default)]
pub(super) struct Disk {
    meters: Meters<10>,
}

impl Sensor for Disk {
    fn sample(&mut self, context: &Context<'_>, out: &mut Vec<Sample>) -> io::Result<()> {
        let mut all = parse(&context.root.read(FILE)?)?;
        if context.root.has("sys/block") {
            // The kernel writes a slash in the name of a disk as an exclamation mark there.
            all.retain(|name, _| {
                context
                    .root
                    .has(&format!("sys/block/{}", name.replace('/', "!")))
            });
        }
        for (device, counted, time) in self.meters.step(context.at, all) {
            if !context.is_active(&format!("%DISK_USAGE::{device}")) {
                continue;
            }
            let [
                reads,
                _,
                read_sectors,
                read_ms,
                writes,
                _,
                write_sectors,
                write_ms,
                _,
                queued_ms,
            ] = counted;
            let requests = float(reads) + float(writes);
            let request_ms = float(read_ms) + float(write_ms);
            out.push(Sample::Disk(DiskUsageRecord {
                timestamp: context.unix_ns,
                hostname: context.hostname.to_owned(),
                device_name: device,
                queue: per_second(queued_ms, time) / 1_000.0,
                read_bytes_per_second: per_second(read_sectors, time) * SECTOR_BYTES,
                reads_per_second: per_second(reads, time),
                service_time: if requests == 0.0 {
                    0.0
                } else {
                    request_ms / requests
                },
                write_bytes_per_second: per_second(write_sectors, time) * SECTOR_BYTES,
                writes_per_second: per_second(writes, time),
            }));
        }
        Ok(())
    }
}

/// Returns the counters of each device. The number of requests in flight is not a counter.
fn parse(text: &str) -> io::Result<BTreeMap<String, [u64; 10]>> {
    let mut all = BTreeMap::new();
    for line in text.lines() {
        let mut words = line.split_ascii_whitespace().skip(2);
        let name = words.next().ok_or_else(|| malformed(FILE, line))?;
        if name.starts_with("loop") || name.starts_with("ram") {
            continue;
        }
        let rest = words.collect::<Vec<_>>().join(" ");
        let Some(columns) = numbers::<COLUMNS>(&rest) else {
            return Err(malformed(FILE, line));
        };
        let [a, b, c, d, e, f, g, h, _, busy, weighted] = columns;
        all.insert(name.to_owned(), [a, b, c, d, e, f, g, h, busy, weighted]);
    }
    Ok(all)
}

#[cfg(test)]
mod tests;
