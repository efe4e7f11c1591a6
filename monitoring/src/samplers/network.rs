//! Network interfaces, from `/proc/net/dev` and `/sys/class/net`.

use std::collections::BTreeMap;
use std::io;

use baler_connector_kieker::types::NetworkUtilizationRecord;

use super::proc::{Meters, malformed, numbers, per_second};
use super::sensor::{Context, Sample, Sensor};

const FILE: &str = "proc/net/dev";

/// Received: bytes, packets, errs, drop, fifo, frame, compressed, multicast; then sent: bytes,
/// packets, errs, drop, fifo, colls, carrier, compressed.
const COLUMNS: usize = 16;

/// Traffic of each interface since the last sample, except the loopback interface `lo`.
#[derive(Debug, Default)]
pub(super) struct Network {
    meters: Meters<COLUMNS>,
}

impl Sensor for Network {
    fn sample(&mut self, context: &Context<'_>, out: &mut Vec<Sample>) -> io::Result<()> {
        let all = parse(&context.root.read(FILE)?)?;
        for (interface, counted, time) in self.meters.step(context.at, all) {
            if !context.is_active(&format!("%NETWORK_UTILIZATION::{interface}")) {
                continue;
            }
            let [
                rx_bytes,
                rx_packets,
                rx_errors,
                rx_dropped,
                rx_overruns,
                rx_frame,
                _,
                _,
                tx_bytes,
                tx_packets,
                tx_errors,
                tx_dropped,
                tx_overruns,
                tx_collisions,
                tx_carrier,
                _,
            ] = counted.map(|counted| per_second(counted, time));
            out.push(Sample::Network(NetworkUtilizationRecord {
                timestamp: context.unix_ns,
                hostname: context.hostname.to_owned(),
                speed: speed(context, &interface),
                interface_name: interface,
                tx_bytes_per_second: tx_bytes,
                tx_carrier_per_second: tx_carrier,
                tx_collisions_per_second: tx_collisions,
                tx_dropped_per_second: tx_dropped,
                tx_errors_per_second: tx_errors,
                tx_overruns_per_second: tx_overruns,
                tx_packets_per_second: tx_packets,
                rx_bytes_per_second: rx_bytes,
                rx_dropped_per_second: rx_dropped,
                rx_errors_per_second: rx_errors,
                rx_frame_per_second: rx_frame,
                rx_overruns_per_second: rx_overruns,
                rx_packets_per_second: rx_packets,
            }));
        }
        Ok(())
    }
}

fn parse(text: &str) -> io::Result<BTreeMap<String, [u64; COLUMNS]>> {
    let mut all = BTreeMap::new();
    // Two lines of headings.
    for line in text.lines().skip(2) {
        let split = line.split_once(':');
        let parsed = split.and_then(|(name, rest)| Some((name.trim(), numbers(rest)?)));
        let (name, counters) = parsed.ok_or_else(|| malformed(FILE, line))?;
        if name != "lo" {
            all.insert(name.to_owned(), counters);
        }
    }
    Ok(all)
}

/// In bits per second; 0 if unknown, as for virtual interfaces and interfaces that are down.
fn speed(context: &Context<'_>, interface: &str) -> i64 {
    let text = context
        .root
        .read(&format!("sys/class/net/{interface}/speed"));
    let megabits = text.ok().and_then(|text| text.trim().parse::<u32>().ok());
    megabits.map_or(0, |megabits| i64::from(megabits) * 1_000_000)
}

#[cfg(test)]
mod tests;
