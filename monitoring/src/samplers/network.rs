//! Network interfaces, from `/proc/net/dev` and `/sys/class/net`.

use std::collections::BTreeMap;
use std::io;

use baler_common::record::kieker::NetworkUtilizationRecord;

use super::counter::{Meters, per_second};
use super::proc::{malformed, numbers};
use super::sampler::{Context, Sample, Sensor};

const FILE: &str = "proc/net/dev";

/// Received: bytes, packets, errs, drop, fifo, frame, compressed, multicast; then sent: bytes,
/// packets, errs, drop, fifo, colls, carrier, compressed.
const COLUMNS: usize = 16;

/// What each interface sent and received since the sample before; without the one to itself, `lo`.
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

/// In bits per second; 0 where nobody knows, as for virtual interfaces and those that are down.
fn speed(context: &Context<'_>, interface: &str) -> i64 {
    let text = context
        .root
        .read(&format!("sys/class/net/{interface}/speed"));
    let megabits = text.ok().and_then(|text| text.trim().parse::<i64>().ok());
    megabits.unwrap_or(0).max(0).saturating_mul(1_000_000)
}

#[cfg(test)]
mod tests {
    use super::super::sampler::Bench;
    use super::*;

    const HEADINGS: &str = "Inter-|   Receive  |  Transmit\n face |bytes packets\n";

    fn dev(lines: &str) -> String {
        format!("{HEADINGS}    lo: 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9 9\n{lines}")
    }

    fn records(samples: Vec<Sample>) -> Vec<NetworkUtilizationRecord> {
        let all = samples.into_iter().map(|sample| match sample {
            Sample::Network(record) => record,
            other => panic!("{other:?}"),
        });
        all.collect()
    }

    #[test]
    fn rates_are_per_second_of_the_clock_that_never_jumps() {
        let mut bench = Bench::new(Network::default());
        bench.put(
            FILE,
            &dev("  eth0:100 1 2 3 4 5 6 7 200 9 10 11 12 13 14 15\n"),
        );
        bench.put("sys/class/net/eth0/speed", "10000\n");
        assert!(bench.sample_after(0).unwrap().is_empty());
        bench.put(
            FILE,
            &dev("  eth0: 600 2 4 6 8 10 6 7 1200 19 30 41 52 63 74 15\n"),
        );
        let all = records(bench.sample_after(500).unwrap());
        let [record] = all.as_slice() else {
            panic!("{all:?}");
        };
        let wanted = NetworkUtilizationRecord {
            timestamp: record.timestamp,
            hostname: "host".into(),
            interface_name: "eth0".into(),
            speed: 10_000_000_000,
            tx_bytes_per_second: 2_000.0,
            tx_carrier_per_second: 120.0,
            tx_collisions_per_second: 100.0,
            tx_dropped_per_second: 60.0,
            tx_errors_per_second: 40.0,
            tx_overruns_per_second: 80.0,
            tx_packets_per_second: 20.0,
            rx_bytes_per_second: 1_000.0,
            rx_dropped_per_second: 6.0,
            rx_errors_per_second: 4.0,
            rx_frame_per_second: 10.0,
            rx_overruns_per_second: 8.0,
            rx_packets_per_second: 2.0,
        };
        assert_eq!(*record, wanted);
    }

    #[test]
    fn interfaces_come_go_wrap_and_are_reset() {
        let line = |name: &str, bytes: u64| format!("{name}: {bytes}{}\n", " 0".repeat(15));
        let mut bench = Bench::new(Network::default());
        let rates = |samples| {
            let all = records(samples).into_iter();
            all.map(|it| (it.interface_name, it.rx_bytes_per_second))
                .collect::<Vec<_>>()
        };
        bench.put(FILE, &dev(&(line("a", 4_294_967_290) + &line("b", 1_000))));
        bench.sample_after(0).unwrap();
        // One wraps, one is reset.
        bench.put(FILE, &dev(&(line("a", 4) + &line("b", 10))));
        assert_eq!(
            rates(bench.sample_after(1_000).unwrap()),
            [("a".to_owned(), 10.0)]
        );
        // One is gone, and one is new.
        bench.put(FILE, &dev(&(line("b", 30) + &line("c", 10))));
        assert_eq!(
            rates(bench.sample_after(2_000).unwrap()),
            [("b".to_owned(), 10.0)]
        );
        bench.put(FILE, &dev(&(line("a", 50) + &line("c", 10))));
        assert_eq!(
            rates(bench.sample_after(1_000).unwrap()),
            [("c".to_owned(), 0.0)]
        );
        // No time has passed.
        assert_eq!(rates(bench.sample_after(0).unwrap()), []);
        // After a pause nothing is recorded of it.
        bench.sensor = Network::default();
        assert_eq!(rates(bench.sample_after(1_000).unwrap()), []);
    }

    #[test]
    fn strange_texts_are_errors_and_speeds_nobody_knows_are_zero() {
        let mut bench = Bench::new(Network::default());
        for lines in ["eth0\n", "eth0: 1 2 3\n", "eth0: x\n"] {
            bench.put(FILE, &dev(lines));
            assert!(bench.sample_after(1).is_err(), "{lines}");
        }
        let zeros = format!("eth0:{}\n", " 0".repeat(16));
        bench.put(FILE, &dev(&zeros));
        bench.sample_after(1).unwrap();
        for speed in ["-1", "", "fast", "99999999999999999999"] {
            bench.put("sys/class/net/eth0/speed", speed);
            let all = records(bench.sample_after(1).unwrap());
            assert_eq!(all.first().unwrap().speed, 0);
        }
    }
}
