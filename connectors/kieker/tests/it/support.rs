//! A reader on loopback, senders, and records as JSON.

use std::fs;
use std::io::Write as _;
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use baler_common::record::{RecordRef, ValueRef};
use baler_common::transport::uri::Uri;
use baler_common::transport::{ChunkMeta, ChunkReader, Damaged, Received, Verdict};
use baler_connector_kieker::container;
use baler_connector_kieker::{KiekerTcpConfig, KiekerTcpReader};
use baler_connector_testkit::within_patience;
use serde_json::{Map, Value, json};

pub(crate) const EMPTY: &str = "kieker.common.record.misc.EmptyRecord";

/// A reader on loopback, with these settings.
pub(crate) fn reader(settings: &str) -> KiekerTcpReader {
    let uri = Uri::parse(&format!("kieker+tcp://127.0.0.1:0{settings}")).unwrap();
    KiekerTcpReader::bind(KiekerTcpConfig::from_uri(uri).unwrap()).unwrap()
}

/// A file of `tests/data`.
pub(crate) fn data(name: &str) -> Vec<u8> {
    fs::read(format!("{}/tests/data/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

/// The records that belong to a recorded stream.
pub(crate) fn expected(name: &str) -> Vec<Value> {
    let text = String::from_utf8(data(name)).unwrap();
    let lines = text.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

pub(crate) fn connect(address: SocketAddr) -> TcpStream {
    TcpStream::connect(address).unwrap()
}

/// Connects and sends; the connection stays open.
pub(crate) fn send(address: SocketAddr, bytes: &[u8]) -> TcpStream {
    let mut sender = connect(address);
    // A receiver that refuses the first bytes may cut the connection before the last ones.
    sender.write_all(bytes).ok();
    sender
}

/// A registration, whose length is this number.
pub(crate) fn registration(id: i32, length: i32, text: &[u8]) -> Vec<u8> {
    let head = [-1, id, length].map(i32::to_be_bytes).concat();
    [head.as_slice(), text].concat()
}

/// A registration with its length in bytes.
pub(crate) fn registered(id: i32, text: &str) -> Vec<u8> {
    registration(id, i32::try_from(text.len()).unwrap(), text.as_bytes())
}

/// A record, without its fields.
pub(crate) fn record(class: i32, timestamp: i64) -> Vec<u8> {
    [class.to_be_bytes().as_slice(), &timestamp.to_be_bytes()].concat()
}

/// The records, chunks and damage that a reader returned.
#[derive(Default)]
pub(crate) struct Heard {
    pub(crate) records: Vec<Value>,
    /// Each chunk's, beside the number of its records.
    pub(crate) metas: Vec<ChunkMeta>,
    pub(crate) damaged: Vec<Damaged>,
}

impl Heard {
    /// Receives and acknowledges one event.
    pub(crate) fn step(&mut self, reader: &mut KiekerTcpReader) {
        let by = Instant::now() + Duration::from_millis(20);
        match reader.receive(by).unwrap() {
            Received::Chunk(delivery) => {
                let meta = delivery.meta.unwrap();
                let records = records(&delivery.bytes);
                assert_eq!(records.len(), usize::try_from(meta.records).unwrap());
                self.records.extend(records);
                self.metas.push(meta);
                reader.settle(delivery.token, Verdict::Ack).unwrap();
            }
            Received::Damaged(damaged) => self.damaged.push(damaged),
            Received::Idle => {}
            other => panic!("{other:?}"),
        }
    }

    /// Receives until this number of records arrived.
    pub(crate) fn until(mut self, reader: &mut KiekerTcpReader, records: usize) -> Self {
        within_patience("the records", || {
            self.step(reader);
            (self.records.len() >= records).then_some(())
        });
        self
    }

    /// Receives until a connection is reported; the report.
    pub(crate) fn damage(reader: &mut KiekerTcpReader) -> Damaged {
        let mut heard = Self::default();
        within_patience("the report", || {
            heard.step(reader);
            heard.damaged.pop()
        })
    }
}

/// The records of a chunk, in the form of `baler receive --format json`.
pub(crate) fn records(chunk: &[u8]) -> Vec<Value> {
    let mut decoder = container::decoder();
    let decoded = decoder.decode(chunk).unwrap();
    decoded.batch.records().map(record_as_json).collect()
}

fn record_as_json(record: RecordRef<'_>) -> Value {
    let fields = record.fields().values();
    let fields: Map<_, _> = fields
        .map(|(name, value)| (name.to_owned(), value_as_json(value)))
        .collect();
    json!({"type": record.type_name(), "timestamp": record.timestamp(), "fields": fields})
}

fn value_as_json(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Bool(value) => value.into(),
        ValueRef::Signed(value) => value.into(),
        ValueRef::F64(value) if value.is_nan() => "NaN".into(),
        ValueRef::F64(f64::INFINITY) => "Infinity".into(),
        ValueRef::F64(f64::NEG_INFINITY) => "-Infinity".into(),
        ValueRef::F64(value) => value.into(),
        ValueRef::String(value) => value.into(),
        ValueRef::List(items) => items.iter().map(value_as_json).collect(),
        other => panic!("{other:?}"),
    }
}
