//! Measures how fast logs and a TCP stream are read, beside a plain scan of the same bytes:
//! `cargo run --profile dist -p baler-connector-kieker --example read_speed -- 4000000`.
//!
//! The records are executions of 200 operations on 4 hosts, one file in the page cache or one
//! connection over loopback. Times are CPU time of all threads that read, kernel included.

#![expect(clippy::print_stdout, reason = "an example tells its results")]

use std::error::Error;
use std::fs::{self, File};
use std::io::{BufWriter, Read, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use baler_common::transport::{ChunkReader, Received, Verdict};
use baler_connector_kieker::{KiekerLogConfig, KiekerLogReader, KiekerTcpConfig, KiekerTcpReader};

const CLASS: &str = "kieker.common.record.controlflow.OperationExecutionRecord";
const RUNS: usize = 5;
const FILE: &str = "kieker-20261125-000000000-UTC-001.log.dat";

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    let records: u32 = match std::env::args().nth(1) {
        Some(number) => number.parse()?,
        None => 50_000,
    };
    let folder = tempfile::tempdir()?;
    let [in_text, in_binary] = ["text", "binary"].map(|name| folder.path().join(name));
    fs::create_dir(&in_text)?;
    fs::create_dir(&in_binary)?;
    text(&in_text, records)?;
    binary(&in_binary, records)?;
    for (name, folder) in [("text", &in_text), ("binary", &in_binary)] {
        let file = folder.join(FILE);
        let scan = fastest(|| scan(File::open(&file)?))?;
        let read = fastest(|| {
            let reader = KiekerLogReader::open(KiekerLogConfig::new(folder))?;
            take(reader, records)
        })?;
        show(name, records, read, scan);
    }
    let stream = [registrations()?, fs::read(in_binary.join(FILE))?].concat();
    let scan = fastest(|| {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        with_sender(address, &stream, || scan(listener.accept()?.0))
    })?;
    let read = fastest(|| {
        let reader = KiekerTcpReader::bind(KiekerTcpConfig::new("127.0.0.1", 0))?;
        with_sender(reader.local_addr(), &stream, || take(reader, records))
    })?;
    show("TCP", records, read, scan);
    Ok(())
}

/// The CPU time of the fastest run: the machine may have other work.
fn fastest(mut run: impl FnMut() -> Outcome<u64>) -> Outcome<u64> {
    let mut least = u64::MAX;
    for _ in 0..RUNS {
        let before = cpu_ns()?;
        least = least.min(run()? - before);
    }
    Ok(least)
}

fn show(name: &str, records: u32, read: u64, scan: u64) {
    let per_record = |ns: u64| ns as f64 / f64::from(records);
    println!(
        "{name}: {:.1} M records/s, {:.0} ns a record; scan {:.0} ns a record",
        1_000.0 / per_record(read),
        per_record(read),
        per_record(scan),
    );
}

/// Counts line ends. Returns the CPU time of the process so far.
fn scan(mut bytes: impl Read) -> Outcome<u64> {
    let mut buffer = vec![0; 256 << 10];
    let mut lines = 0;
    loop {
        let read = bytes.read(&mut buffer)?;
        if read == 0 {
            std::hint::black_box(lines);
            return cpu_ns();
        }
        lines += memchr::memchr_iter(b'\n', buffer.split_at(read).0).count();
    }
}

/// Makes chunks of all records. Returns the CPU time of the process so far.
fn take(mut reader: impl ChunkReader, expected: u32) -> Outcome<u64> {
    let mut records = 0;
    while records < expected {
        match reader.receive(Instant::now() + Duration::from_secs(10))? {
            Received::Chunk(delivery) => {
                records += delivery.meta.map_or(0, |meta| meta.records);
                reader.settle(delivery.token, Verdict::Ack)?;
            }
            other => return Err(format!("{records} records, then {other:?}").into()),
        }
    }
    cpu_ns()
}

/// Sends the bytes while they are read. The sender's CPU time does not count.
fn with_sender(
    address: SocketAddr,
    stream: &[u8],
    read: impl FnOnce() -> Outcome<u64>,
) -> Outcome<u64> {
    let (done, ended) = mpsc::channel::<()>();
    thread::scope(|scope| {
        let sender = scope.spawn(move || {
            let send = || TcpStream::connect(address)?.write_all(stream);
            let sent = send().map_err(|error| error.to_string());
            let sent = sent.and_then(|()| {
                thread_cpu_ns("/proc/thread-self/schedstat").map_err(|error| error.to_string())
            });
            // The time of this thread is part of the process's until it ends.
            ended.recv().ok();
            sent
        });
        let read = read();
        drop(done);
        let sent = sender.join().map_err(|_| "the sender panicked")??;
        Ok(read? - sent)
    })
}

/// CPU time of the threads that there are now.
fn cpu_ns() -> Outcome<u64> {
    let threads = fs::read_dir("/proc/self/task")?;
    threads
        .map(|thread| thread_cpu_ns(thread?.path().join("schedstat")))
        .sum()
}

fn thread_cpu_ns(schedstat: impl AsRef<Path>) -> Outcome<u64> {
    let text = fs::read_to_string(schedstat)?;
    let (on_cpu, _) = text.split_once(' ').ok_or("schedstat is one number")?;
    Ok(on_cpu.parse()?)
}

/// Returns the registrations that a sender sends before the records of [`binary`].
fn registrations() -> Outcome<Vec<u8>> {
    let mut bytes = Vec::new();
    for (id, text) in (0_u32..).zip(strings()) {
        bytes.extend((-1_i32).to_be_bytes());
        bytes.extend(id.to_be_bytes());
        bytes.extend(u32::try_from(text.len())?.to_be_bytes());
        bytes.extend(text.as_bytes());
    }
    Ok(bytes)
}

/// The strings of [`binary`], in the order of their ids.
fn strings() -> impl Iterator<Item = String> {
    let hosts = (0..4).map(|host| format!("host{host}"));
    let first = [CLASS, "<no-session-id>"].map(str::to_owned);
    first
        .into_iter()
        .chain(hosts)
        .chain((0..200).map(operation))
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
    let mut log = BufWriter::new(File::create(folder.join(FILE))?);
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
    let mut map = String::new();
    for (id, text) in strings().enumerate() {
        map.push_str(&format!("${id}={text}\n"));
    }
    fs::write(folder.join("kieker.map"), map)?;
    let mut log = BufWriter::new(File::create(folder.join(FILE))?);
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
