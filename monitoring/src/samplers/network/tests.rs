use super::super::sensor::Bench;
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
