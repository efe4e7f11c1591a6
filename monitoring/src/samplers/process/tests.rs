use super::super::sensor::Bench;
use super::*;

fn stat(minor: u64, user: u64, system: u64) -> String {
    format!(
        "4711 (a ) b (c) S 1 4711 4711 0 -1 4194560 {minor} 8 2 9 {user} {system} 0 0 20 0 \
             3 0 5000 1000000 250 18446744073709551615 1 1 0 0\n"
    )
}

fn bench() -> Bench<Process> {
    let bench = Bench::new(Process::default());
    bench.put(UPTIME, "60.50 100.00\n");
    bench.put(
        STATUS,
        "Name:\tx\nVmPeak:\t  9 kB\nVmSize:\t  8 kB\nVmHWM:\t  7 kB\nVmRSS:\t  6 kB\nThreads:\t3\n",
    );
    bench
}

#[test]
fn processor_time_is_told_in_processors() {
    let mut bench = bench();
    bench.put(STAT, &stat(100, 50, 10));
    let first = bench.sample_after(0).unwrap();
    let [Sample::Uptime(uptime)] = first.as_slice() else {
        panic!("{first:?}");
    };
    assert_eq!(uptime.uptime_ms, 10_500);
    assert!(uptime.vm_name.ends_with("@host"));
    bench.put(STAT, &stat(110, 80, 20));
    let second = bench.sample_after(200).unwrap();
    let [Sample::Uptime(_), Sample::Process(record)] = second.as_slice() else {
        panic!("{second:?}");
    };
    let wanted = ProcessRecord {
        timestamp: record.timestamp,
        hostname: "host".into(),
        process_id: std::process::id(),
        user_utilization: 1.5,
        system_utilization: 0.5,
        resident_bytes: 6 << 10,
        peak_resident_bytes: 7 << 10,
        virtual_bytes: 8 << 10,
        threads: 3,
        minor_faults_per_second: 50.0,
        major_faults_per_second: 0.0,
    };
    assert_eq!(*record, wanted);
}

#[test]
fn strange_texts_are_errors() {
    for text in [
        "",
        "1 (x",
        "1 (x) S 1 2",
        "1 (x) S 1 1 1 0 -1 1 a 8 2 9 1 1",
    ] {
        let mut bench = bench();
        bench.put(STAT, text);
        assert!(bench.sample_after(0).is_err(), "{text}");
    }
    for text in ["", "x", "-1 0", "inf", "NaN", "1e300"] {
        assert!(parse_uptime(text, 0).is_err(), "{text}");
    }
    assert_eq!(parse_uptime("1.0 1", u64::MAX).unwrap(), 0);
    let mut bench = bench();
    bench.put(STAT, &stat(1, 1, 1));
    bench.put(STATUS, "Name: x\n");
    bench.sample_after(0).unwrap();
    assert!(bench.sample_after(1).is_err());
}
