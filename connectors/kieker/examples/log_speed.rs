//! How fast logs are read, beside a plain scan of the same bytes:
//! `cargo run --release -p baler-connector-kieker --example log_speed -- 4000000`.
//!
//! The records are executions of 200 operations on 4 hosts, one file, in the page cache. Times are
//! CPU time of the thread, kernel included.

#![expect(clippy::print_stdout, reason = "an example tells its results")]

use std::error::Error;
use std::fs::{self, File};
use std::io::{BufWriter, Read as _, Write as _};
use std::path::Path;
use std::time::Instant;

use baler_common::transport::{ChunkReader as _, Received, Verdict};
use baler_connector_kieker::{KiekerLogConfig, KiekerLogReader};

const CLASS: &str = "kieker.common.record.controlflow.OperationExecutionRecord";
const RUNS: usize = 5;

fn main() -> Result<(), Box<dyn Error>> {
    let records: u32 = match std::env::args().nth(1) {
        Some(number) => number.parse()?,
        None => 50_000,
    };
    let folder = tempfile::tempdir()?;
    for (name, write) in [
        ("text", text as fn(&Path, u32) -> std::io::Result<()>),
        ("binary", binary),
    ] {
        let folder = folder.path().join(name);
        fs::create_dir(&folder)?;
        write(&folder, records)?;
        let file = folder.join("kieker-20261125-000000000-UTC-001.log.dat");
        let bytes = fs::metadata(&file)?.len();
        // The fastest run: the machine may have other work.
        let fastest = |run: &mut dyn FnMut() -> Result<(), Box<dyn Error>>| {
            let mut times = Vec::new();
            for _ in 0..RUNS {
                let before = cpu_ns()?;
                run()?;
                times.push(cpu_ns()?.saturating_sub(before));
            }
            Ok::<_, Box<dyn Error>>(times.into_iter().min().unwrap_or(0))
        };
        let scan = fastest(&mut || scan(&file))?;
        let read = fastest(&mut || read(&folder, records))?;
        let per_record = |ns: u64| ns as f64 / f64::from(records);
        println!(
            "{name}: {bytes} bytes, {:.1} M records/s, {:.0} ns a record; scan {:.0} ns a record",
            1_000.0 / per_record(read),
            per_record(read),
            per_record(scan),
        );
    }
    Ok(())
}

/// Counts the line ends of a file.
fn scan(file: &Path) -> Result<(), Box<dyn Error>> {
    let mut file = File::open(file)?;
    let mut buffer = vec![0; 256 << 10];
    let mut lines = 0;
    loop {
        let read = file.read(&mut buffer)?;
        if read == 0 {
            std::hint::black_box(lines);
            return Ok(());
        }
        lines += memchr::memchr_iter(b'\n', buffer.get(..read).unwrap_or_default()).count();
    }
}

/// Makes chunks of a log.
fn read(folder: &Path, expected: u32) -> Result<(), Box<dyn Error>> {
    let mut reader = KiekerLogReader::open(KiekerLogConfig::new(folder))?;
    let mut records = 0;
    while let Received::Chunk(delivery) = reader.receive(Instant::now())? {
        records += delivery.meta.map_or(0, |meta| meta.records);
        reader.settle(delivery.token, Verdict::Ack)?;
    }
    match records == expected {
        true => Ok(()),
        false => Err(format!("{records} records instead of {expected}").into()),
    }
}

/// CPU time of this thread (`proc(5)`: `/proc/self/schedstat`).
fn cpu_ns() -> Result<u64, Box<dyn Error>> {
    let text = fs::read_to_string("/proc/thread-self/schedstat")?;
    let first = text.split(' ').next().unwrap_or_default();
    Ok(first.parse()?)
}

fn operation(number: u32) -> String {
    let number = number % 200;
    format!(
        "public static java.util.List com.example.shop.Catalog{number}.find(int, java.lang.String)"
    )
}

fn times(number: u32) -> [i64; 3] {
    let start = 1_700_000_000_000_000_000 + i64::from(number) * 1_000;
    [start + 900, start, start + 800]
}

fn text(folder: &Path, records: u32) -> std::io::Result<()> {
    fs::write(folder.join("kieker.map"), format!("$1={CLASS}\n"))?;
    let mut log = BufWriter::new(File::create(
        folder.join("kieker-20261125-000000000-UTC-001.log.dat"),
    )?);
    for number in 0..records {
        let ([logged, tin, tout], host) = (times(number), number % 4);
        let (trace, eoi) = (
            7_000_000_000_000_000_i64 + i64::from(number / 8),
            number % 8,
        );
        writeln!(
            log,
            "$1;{logged};{};<no-session-id>;{trace};{tin};{tout};host{host};{eoi};{eoi}",
            operation(number)
        )?;
    }
    log.flush()
}

fn binary(folder: &Path, records: u32) -> std::io::Result<()> {
    let mut map = format!("$0={CLASS}\n$1=<no-session-id>\n");
    for host in 0..4 {
        map.push_str(&format!("${}=host{host}\n", host + 2));
    }
    for number in 0..200 {
        map.push_str(&format!("${}={}\n", number + 6, operation(number)));
    }
    fs::write(folder.join("kieker.map"), map)?;
    let mut log = BufWriter::new(File::create(
        folder.join("kieker-20261125-000000000-UTC-001.log.dat"),
    )?);
    for number in 0..records {
        let ([logged, tin, tout], host) = (times(number), number % 4 + 2);
        let (trace, eoi) = (
            7_000_000_000_000_000_i64 + i64::from(number / 8),
            number % 8,
        );
        log.write_all(&0_u32.to_be_bytes())?;
        log.write_all(&logged.to_be_bytes())?;
        log.write_all(&(number % 200 + 6).to_be_bytes())?;
        log.write_all(&1_u32.to_be_bytes())?;
        for number in [trace, tin, tout] {
            log.write_all(&number.to_be_bytes())?;
        }
        for number in [host, eoi, eoi] {
            log.write_all(&number.to_be_bytes())?;
        }
    }
    log.flush()
}
