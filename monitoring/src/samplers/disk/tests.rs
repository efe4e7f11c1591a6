use super::super::sensor::Bench;
use super::*;

fn records(samples: Vec<Sample>) -> Vec<DiskUsageRecord> {
    let all = samples.into_iter().map(|sample| match sample {
        Sample::Disk(record) => record,
        other => panic!("{other:?}"),
    });
    all.collect()
}

#[test]
fn rates_are_those_of_disks_only() {
    let mut bench = Bench::new(Disk::default());
    bench.put("sys/block/sda/size", "1");
    bench.put("sys/block/cciss!c0d0/size", "1");
    bench.put(
            FILE,
            "   7       0 loop0 1 2 3 4 5 6 7 8 9 10 11\n   8       0 sda 10 0 100 20 5 0 50 30 1 40 50 0 0 0 0\n   \
             8       1 sda1 10 0 100 20 5 0 50 30 1 40 50\n 104 0 cciss/c0d0 0 0 0 0 0 0 0 0 0 0 0\n",
        );
    assert!(bench.sample_after(0).unwrap().is_empty());
    bench.put(
            FILE,
            "   8       0 sda 14 0 120 28 11 0 90 62 0 90 150 9 9 9 9\n   \
             8       1 sda1 10 0 100 20 5 0 50 30 1 40 50\n 104 0 cciss/c0d0 0 0 0 0 0 0 0 0 0 0 0\n",
        );
    let all = records(bench.sample_after(200).unwrap());
    let [idle, busy] = all.as_slice() else {
        panic!("{all:?}");
    };
    assert_eq!(
        (idle.device_name.as_str(), idle.service_time),
        ("cciss/c0d0", 0.0)
    );
    let wanted = DiskUsageRecord {
        timestamp: busy.timestamp,
        hostname: "host".into(),
        device_name: "sda".into(),
        queue: 0.5,
        read_bytes_per_second: 51_200.0,
        reads_per_second: 20.0,
        service_time: 4.0,
        write_bytes_per_second: 102_400.0,
        writes_per_second: 30.0,
    };
    assert_eq!(*busy, wanted);
}

#[test]
fn milliseconds_wrap_and_strange_texts_are_errors() {
    let mut bench = Bench::new(Disk::default());
    bench.put(FILE, "8 0 sda 1 0 1 4294967295 0 0 0 0 0 0 0\n");
    bench.sample_after(0).unwrap();
    bench.put(FILE, "8 0 sda 2 0 1 2 0 0 0 0 0 0 0\n");
    let all = records(bench.sample_after(1_000).unwrap());
    assert_eq!(all.first().unwrap().service_time, 3.0);
    for text in [
        "8 0\n",
        "8 0 sda 1 2 3\n",
        "8 0 sda x 0 0 0 0 0 0 0 0 0 0\n",
    ] {
        bench.put(FILE, text);
        assert!(bench.sample_after(1).is_err(), "{text}");
    }
    bench.put(FILE, "");
    assert!(bench.sample_after(1).unwrap().is_empty());
}
