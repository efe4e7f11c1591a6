//! Chunks of records, requests by hand, and receivers that answer by a script.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use baler_common::container::{
    ChunkDecoder, ChunkHeader, ChunkSerializer as _, Limits, NativeSerializer,
};
use baler_common::record::{AnyValue, BatchBuilder, Record, RecordBatch};
use baler_common::transport::{
    Chunk, ChunkIdentity, ChunkMeta, ChunkReader, ChunkWriter, ContainerKind, Delivery,
    DeliveryReport, Epoch, Outcome, ProducerId, Received,
};
use baler_connector_otlp::types::Log;
use baler_connector_otlp::{OtlpReader, OtlpReaderConfig, OtlpWriter, OtlpWriterConfig};
use baler_connector_testkit::within_patience;

pub(crate) fn soon() -> Instant {
    Instant::now() + Duration::from_secs(20)
}

/// Returns a chunk of the records that `push` adds.
pub(crate) fn chunk(ticket: u64, push: impl FnOnce(&mut BatchBuilder)) -> Chunk {
    let mut builder = BatchBuilder::new();
    push(&mut builder);
    let batch = builder.take();
    let epoch = Epoch {
        start_unix_ns: 1,
        random: 2,
    };
    let mut identity = ChunkIdentity::first(ProducerId::new(3), epoch, 0);
    identity.sequence = ticket;
    let mut bytes = Vec::new();
    let header = ChunkHeader::new(identity);
    let mut serializer = NativeSerializer::default();
    serializer.serialize(&batch, &header, &mut bytes).unwrap();
    Chunk {
        ticket,
        meta: ChunkMeta {
            container: ContainerKind::Native,
            records: u32::try_from(batch.len()).unwrap(),
            identity,
        },
        bytes: bytes.into(),
    }
}

pub(crate) fn chunk_of<R: Record>(ticket: u64, records: &[R]) -> Chunk {
    chunk(ticket, |builder| {
        records.iter().for_each(|it| builder.push(it).unwrap());
    })
}

pub(crate) fn log(text: &str) -> Log {
    Log {
        time_unix_nano: Some(7),
        body: Some(AnyValue::String(text.to_owned().into())),
        ..Log::default()
    }
}

pub(crate) fn decoded(bytes: &[u8]) -> RecordBatch {
    ChunkDecoder::new(Limits::default())
        .decode(bytes)
        .unwrap()
        .batch
}

pub(crate) fn reader(set: impl FnOnce(&mut OtlpReaderConfig)) -> OtlpReader {
    let mut config = OtlpReaderConfig::new("127.0.0.1", 0);
    set(&mut config);
    OtlpReader::bind(config).unwrap()
}

/// An open writer.
pub(crate) fn open(config: OtlpWriterConfig) -> OtlpWriter {
    let mut writer = OtlpWriter::new(config);
    writer.reopen(soon()).unwrap();
    writer
}

pub(crate) fn receive(reader: &mut OtlpReader) -> Delivery {
    match reader.receive(soon()).unwrap() {
        Received::Chunk(delivery) => delivery,
        other => panic!("{other:?}"),
    }
}

/// Waits for the next report.
pub(crate) fn report(writer: &mut OtlpWriter) -> DeliveryReport {
    let mut reports = Vec::new();
    within_patience("a report", || {
        writer.delivery_reports(&mut reports).unwrap();
        reports.pop()
    })
}

/// Offers a chunk and waits for its outcome. Returns the text of a refusal.
pub(crate) fn fate(writer: &mut OtlpWriter, chunk: Chunk) -> Result<(), String> {
    writer.offer(chunk).unwrap();
    match report(writer).outcome {
        Outcome::Confirmed => Ok(()),
        Outcome::Refused(error) => Err(format!("{:?}: {error}", error.class)),
        Outcome::Spooled => panic!("there is no spool"),
    }
}

/// Returns a count by name.
pub(crate) fn count(counts: &[(&'static str, u64)], name: &str) -> u64 {
    let count = counts.iter().find(|(it, _)| *it == name);
    count.map_or(0, |(_, count)| *count)
}

/// An answer of HTTP.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: String,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// Sends the head and the body of a request.
pub(crate) fn send(address: SocketAddr, path: &str, headers: &str, body: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    let length = body.len();
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {length}\r\n{headers}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    // A receiver that refuses the head need not read the body.
    stream.write_all(body).ok();
    stream
}

pub(crate) fn answer(mut stream: TcpStream) -> Answer {
    stream
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).ok();
    let end = bytes
        .windows(4)
        .position(|it| it == b"\r\n\r\n")
        .expect("a head");
    let body = bytes.split_off(end + 4);
    let head = String::from_utf8(bytes).unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let headers = head.to_lowercase();
    Answer {
        status,
        headers,
        body,
    }
}

/// A receiver of OTLP/HTTP that gives these answers, whatever comes. Returns its port, and the
/// number of bytes of each request at the end.
pub(crate) fn receiver(answers: Vec<Vec<u8>>) -> (u16, JoinHandle<Vec<usize>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let thread = thread::spawn(move || {
        let mut answers = answers.into_iter();
        let mut requests = Vec::new();
        while answers.len() > 0 {
            let (stream, _) = listener.accept().unwrap();
            let mut stream = BufReader::new(stream);
            while let Some(length) = body_length(&mut stream) {
                let mut body = vec![0; length];
                stream.read_exact(&mut body).unwrap();
                requests.push(length);
                let answer = answers.next().expect("a request more than expected");
                stream.get_mut().write_all(&answer).ok();
                if answers.len() == 0 {
                    return requests;
                }
            }
        }
        requests
    });
    (port, thread)
}

/// Reads the head of a request. Returns nothing at the end of the connection.
fn body_length(stream: &mut BufReader<TcpStream>) -> Option<usize> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if line == "\r\n" {
            return Some(length);
        }
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
    }
}

/// Returns an answer of HTTP.
pub(crate) fn http(status: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head = format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {length}\r\n\r\n");
    [head.as_bytes(), body].concat()
}
