//! A hostile log takes bounded memory, whatever its map and its files announce.
//!
//! A test binary of its own with one test, because it counts every allocation of its process.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests fail by panicking, like the tests"
)]

use std::fs;
use std::io::{Cursor, Write as _};
use std::time::Instant;

use baler_common::transport::{ChunkReader as _, Received, Verdict};
use baler_connector_kieker::{KiekerLogConfig, KiekerLogReader};
use flate2::Compression;

#[path = "../../../common/tests/it/counting.rs"]
mod counting;

#[global_allocator]
static ALLOCATOR: counting::Counting = counting::Counting;

const MIB: usize = 1 << 20;

const EMPTY: &str = "kieker.common.record.misc.EmptyRecord";
const EVENT: &str = "kieker.common.record.remotecontrol.ActivationEvent";
const LIST: &str = "kieker.common.record.remotecontrol.ActivationParameterEvent";

/// A log that takes too much memory unless a bound stops it.
struct Attack {
    name: String,
    map: Vec<u8>,
    log: Vec<u8>,
    /// The most bytes that reading may take.
    bytes: usize,
}

fn attack(name: &str, map: impl Into<Vec<u8>>, log: impl Into<Vec<u8>>, mib: usize) -> Attack {
    Attack {
        name: name.to_owned(),
        map: map.into(),
        log: log.into(),
        bytes: mib * MIB,
    }
}

fn attacks() -> Vec<Attack> {
    let empty = format!("$1={EMPTY}\n");
    let mut attacks = vec![
        attack("entries that are none", "$\n".repeat(MIB), "$1;1\n", 8),
        attack(
            "an endless entry",
            "$1=".to_owned() + &"x".repeat(12 * MIB),
            "$1;1\n",
            8,
        ),
        attack("a map of more than 64 MiB", giant_map(), "$1;1\n", 90),
        attack(
            "an endless record",
            empty.clone(),
            "$1;".to_owned() + &"x".repeat(12 * MIB),
            8,
        ),
        attack(
            "a record of empty lines",
            empty.clone(),
            "$1;1".to_owned() + &"\n".repeat(12 * MIB),
            8,
        ),
        attack(
            "records that are none",
            empty.clone(),
            "$\n".repeat(MIB / 16),
            8,
        ),
        attack("ever new texts", format!("$1={EVENT}\n"), new_texts(), 40),
        attack(
            "100,000 numbers of a class",
            many_numbers().0,
            many_numbers().1,
            40,
        ),
    ];
    for shift in 8..31 {
        let many = 1_i32 << shift;
        let map = format!("$1={LIST}\n$2=x\n${many}=y\n");
        let record = [1, 0, 0, 2, many, many].map(i32::to_be_bytes).concat();
        attacks.push(attack("a list in a binary log", map, record, 8));
        let map = format!("$1={LIST}\n");
        let record = format!("$1;1;a;b;{many};x\n");
        attacks.push(attack("a list in a text log", map, record, 8));
    }
    for byte in [b' ', 0] {
        for (name, bytes) in bombs(&vec![byte; 8 * MIB]) {
            let name = format!("8 MiB of {byte:#x} by {name}");
            attacks.push(attack(&name, empty.clone(), bytes, 6));
        }
    }
    attacks
}

fn giant_map() -> String {
    let text = "x".repeat(MIB - 1);
    (2..100).map(|id| format!("${id}={text}\n")).collect()
}

/// 48 MiB of texts of 4 KiB.
fn new_texts() -> String {
    (0..12 << 10)
        .map(|number| format!("$1;1;{number:04096}\n"))
        .collect()
}

fn many_numbers() -> (String, String) {
    let map = (1..100_000).map(|id| format!("${id}={EMPTY}\n")).collect();
    (map, (1..100_000).map(|id| format!("${id};1\n")).collect())
}

/// Returns the bytes in each compression.
fn bombs(bytes: &[u8]) -> Vec<(&'static str, Vec<u8>)> {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(bytes).unwrap();
    let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), Compression::fast());
    zlib.write_all(bytes).unwrap();
    let mut bzip2 = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    bzip2.write_all(bytes).unwrap();
    let options = lzma_rust2::XzOptions::with_preset(1);
    let mut xz = lzma_rust2::XzWriter::new(Vec::new(), options).unwrap();
    xz.write_all(bytes).unwrap();
    let xz = xz.finish().unwrap();
    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default();
    zip.start_file("kieker-1.dat", options).unwrap();
    zip.write_all(bytes).unwrap();
    vec![
        ("gzip", gzip.finish().unwrap()),
        ("zlib", zlib.finish().unwrap()),
        ("bzip2", bzip2.finish().unwrap()),
        (
            "xz with a dictionary of 4 GiB",
            with_giant_dictionary(xz.clone()),
        ),
        ("xz", xz),
        ("zip", zip.finish().unwrap().into_inner()),
    ]
}

/// Makes the header of the first block ask for a dictionary of 4 GiB.
fn with_giant_dictionary(mut xz: Vec<u8>) -> Vec<u8> {
    let (_, block) = xz.split_at_mut(12);
    let words = usize::from(*block.first().unwrap());
    let (header, after) = block.split_at_mut(4 * words);
    // No sizes, the filter LZMA2, one byte of properties.
    assert_eq!(header.get(1..4), Some(&[0, 0x21, 1][..]));
    *header.get_mut(4).unwrap() = 40;
    let mut checksum = flate2::Crc::new();
    checksum.update(header);
    let (checksum_after, _) = after.split_at_mut(4);
    checksum_after.copy_from_slice(&checksum.sum().to_le_bytes());
    xz
}

/// Reads everything. Returns the number of records, and of parts that cannot be read.
fn read(config: KiekerLogConfig) -> (u32, u32) {
    let mut reader = KiekerLogReader::open(config).unwrap();
    let (mut records, mut damaged) = (0, 0);
    loop {
        match reader.receive(Instant::now()).unwrap() {
            Received::Chunk(delivery) => {
                records += delivery.meta.unwrap().records;
                reader.settle(delivery.token, Verdict::Ack).unwrap();
            }
            Received::Damaged(part) => {
                damaged += 1;
                reader.settle(part.token.unwrap(), Verdict::Reject).unwrap();
            }
            _ => return (records, damaged),
        }
    }
}

#[test]
fn no_log_takes_more_memory_than_the_limits_allow() {
    let (mut all_records, mut all_damaged) = (0, 0);
    for attack in attacks() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("kieker.map"), &attack.map).unwrap();
        fs::write(folder.path().join("kieker-1.dat"), &attack.log).unwrap();
        let config = KiekerLogConfig::new(folder.path());
        let mut found = (0, 0);
        let peak = counting::peak_of(|| found = read(config));
        assert!(peak <= attack.bytes, "{}: {peak} bytes", attack.name);
        all_records += found.0;
        all_damaged += found.1;
    }
    assert!(all_records > 110_000, "{all_records}");
    assert!(all_damaged > 1_000, "{all_damaged}");
}
