//! The machine as a whole: memory and swap space from `/proc/meminfo`, load averages from
//! `/proc/loadavg`.

use std::io;

use baler_connector_kieker::types::{LoadAverageRecord, MemSwapUsageRecord};

use super::proc::{bytes, malformed, signed};
use super::sensor::{Context, Sample, Sensor};

const FILE: &str = "proc/meminfo";
const LOAD_FILE: &str = "proc/loadavg";

/// Memory and swap space: total and used.
#[derive(Debug)]
pub(super) struct Memory;

impl Sensor for Memory {
    fn sample(&mut self, context: &Context<'_>, out: &mut Vec<Sample>) -> io::Result<()> {
        let usage = parse(&context.root.read(FILE)?)?;
        out.push(Sample::Memory(MemSwapUsageRecord {
            timestamp: context.unix_ns,
            hostname: context.hostname.to_owned(),
            mem_total: signed(usage.total),
            mem_used: signed(usage.total - usage.available),
            mem_free: signed(usage.available),
            swap_total: signed(usage.swap_total),
            swap_used: signed(usage.swap_total - usage.swap_free),
            swap_free: signed(usage.swap_free),
        }));
        Ok(())
    }
}

/// In bytes. No more is available or free than there is in total.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Usage {
    total: u64,
    available: u64,
    swap_total: u64,
    swap_free: u64,
}

/// Memory that is available without swapping counts as free, as in Kieker. Before Linux 3.14 this
/// is free memory, buffers and cache.
fn parse(text: &str) -> io::Result<Usage> {
    let field = |name: &str| -> io::Result<Option<u64>> {
        let found = text.lines().find_map(|line| {
            let rest = line.strip_prefix(name)?.strip_prefix(':')?;
            Some((line, rest))
        });
        let Some((line, rest)) = found else {
            return Ok(None);
        };
        let number = rest.trim().trim_end_matches("kB").trim_end();
        let kibibytes: u64 = number.parse().map_err(|_| malformed(FILE, line))?;
        Ok(Some(bytes(kibibytes)))
    };
    let field_or_zero = |name: &str| field(name).map(|size| size.unwrap_or(0));
    let total = field("MemTotal")?.ok_or_else(|| malformed(FILE, "no MemTotal"))?;
    let available = match field("MemAvailable")? {
        Some(available) => available,
        None => {
            let free = field("MemFree")?.ok_or_else(|| malformed(FILE, "no MemFree"))?;
            let buffers = field_or_zero("Buffers")?;
            let cached = field_or_zero("Cached")?;
            free.saturating_add(buffers).saturating_add(cached)
        }
    };
    let swap_total = field_or_zero("SwapTotal")?;
    Ok(Usage {
        total,
        available: available.min(total),
        swap_total,
        swap_free: field_or_zero("SwapFree")?.min(swap_total),
    })
}

/// The load averages of the machine.
#[derive(Debug)]
pub(super) struct Load;

impl Sensor for Load {
    fn sample(&mut self, context: &Context<'_>, out: &mut Vec<Sample>) -> io::Result<()> {
        let [one, five, fifteen] = parse_load(&context.root.read(LOAD_FILE)?)?;
        out.push(Sample::Load(LoadAverageRecord {
            timestamp: context.unix_ns,
            hostname: context.hostname.to_owned(),
            one_min_load_average: one,
            five_min_load_average: five,
            fifteen_min_load_average: fifteen,
        }));
        Ok(())
    }
}

fn parse_load(text: &str) -> io::Result<[f64; 3]> {
    let mut words = text.split_ascii_whitespace();
    let mut averages = [0.0; 3];
    for average in &mut averages {
        let number = words.next().and_then(|word| word.parse::<f64>().ok());
        *average = number
            .filter(|number| number.is_finite() && *number >= 0.0)
            .ok_or_else(|| malformed(LOAD_FILE, text))?;
    }
    Ok(averages)
}

#[cfg(test)]
mod tests;
