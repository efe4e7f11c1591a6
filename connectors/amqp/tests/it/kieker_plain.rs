//! Messages of Kieker's own `AmqpWriter`, recorded, through a queue.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use baler_common::record::{RecordRef, ValueRef};
use baler_common::transport::uri::{Uri, UriError};
use baler_common::transport::{
    ChunkReader, Damaged, Delivery, ReaderFactory, Received, Settled, Verdict,
};
use baler_connector_amqp::MEDIUM;
use baler_connector_kieker::{container, messages};
use baler_connector_testkit::faults::TcpProxy;
use baler_connector_testkit::{ChunkSource, PATIENCE, Pump, within_patience};
use tempfile::TempDir;

use crate::support::{config, fresh_name, shared_node, writer};

/// The messages, in order.
fn messages() -> Vec<Vec<u8>> {
    let mut bytes: &[u8] = include_bytes!("../../../kieker/tests/golden/amqp-plain-mixed.messages");
    let mut messages = Vec::new();
    while let Some((length, rest)) = bytes.split_first_chunk() {
        let length = usize::try_from(u32::from_be_bytes(*length)).unwrap();
        messages.push(rest[..length].to_vec());
        bytes = &rest[length..];
    }
    messages
}

/// The records, each as a line of the recorded ones.
fn expected() -> Vec<String> {
    let text = include_str!("../../../kieker/tests/golden/amqp-plain-mixed.jsonl");
    text.lines().map(str::to_owned).collect()
}

/// A record as a line of JSON. The recorded ones have numbers and plain strings.
fn line(record: RecordRef<'_>) -> String {
    let timestamp = match record.timestamp() {
        Some(timestamp) => timestamp.to_string(),
        None => "null".to_owned(),
    };
    let name = record.type_name();
    let mut line = format!("{{\"type\":\"{name}\",\"timestamp\":{timestamp},\"fields\":{{");
    for (at, (name, value)) in record.fields().values().enumerate() {
        let comma = if at == 0 { "" } else { "," };
        write!(line, "{comma}\"{name}\":").unwrap();
        match value {
            ValueRef::Signed(value) => write!(line, "{value}").unwrap(),
            ValueRef::String(value) => write!(line, "\"{value}\"").unwrap(),
            other => panic!("{other:?}"),
        }
    }
    line + "}}"
}

/// A queue of its own, and a file for the strings.
struct Queue {
    uri: String,
    folder: TempDir,
}

impl Queue {
    fn new() -> Self {
        let queue = fresh_name("kieker-plain");
        Self {
            uri: shared_node().uri(&format!("?queue={queue}")),
            folder: TempDir::new().unwrap(),
        }
    }

    fn file(&self) -> std::path::PathBuf {
        self.folder.path().join("registry")
    }

    fn reader(&self) -> Box<dyn ChunkReader> {
        self.reader_with(&self.file())
    }

    fn reader_with(&self, file: &Path) -> Box<dyn ChunkReader> {
        plain_reader(&self.uri, file)
    }

    /// Publishes messages, each as it is.
    fn publish(&self, messages: &[Vec<u8>]) {
        let mut pump = Pump::open(writer(&self.uri));
        let mut source = ChunkSource::new(1);
        pump.push(messages.iter().map(|message| {
            let mut chunk = source.next(0, 20);
            chunk.bytes = message.clone().into();
            chunk
        }));
        within_patience("all is confirmed", || {
            pump.step();
            pump.is_done().then_some(())
        });
    }

    /// How many messages are left in the queue.
    fn left(&self) -> u64 {
        let reader = baler_connector_amqp::AmqpReader::new(config(&self.uri)).unwrap();
        within_patience("the length of the queue", || {
            let lag = reader.stats().lag;
            lag.first().map(|lane| lane.chunks)
        })
    }
}

fn plain_reader(uri: &str, file: &Path) -> Box<dyn ChunkReader> {
    let rest = format!("&format=kieker-plain&registry_file={}", file.display());
    let opened = receiver(&format!("{uri}{rest}")).unwrap().open();
    opened.unwrap().reader
}

fn receiver(uri: &str) -> Result<ReaderFactory, UriError> {
    messages::receiver(Uri::parse(uri).unwrap(), true, &MEDIUM)
}

/// What a reader handed out.
#[derive(Default)]
struct Heard {
    lines: Vec<String>,
    deliveries: VecDeque<Delivery>,
    damaged: Vec<Damaged>,
}

impl Heard {
    fn step(&mut self, reader: &mut Box<dyn ChunkReader>) {
        match reader.receive(Instant::now() + Duration::from_millis(50)) {
            Ok(Received::Chunk(delivery)) => {
                let decoded = container::decoder().decode(&delivery.bytes).unwrap();
                let records = delivery.meta.unwrap().records;
                assert_eq!(decoded.batch.len(), usize::try_from(records).unwrap());
                self.lines.extend(decoded.batch.records().map(line));
                self.deliveries.push_back(delivery);
            }
            Ok(Received::Damaged(damaged)) => self.damaged.push(damaged),
            Ok(_) => {}
            Err(error) => assert!(error.is_retryable(), "{error}"),
        }
    }

    /// Receives until so many records came.
    fn records(mut self, reader: &mut Box<dyn ChunkReader>, records: usize) -> Self {
        within_patience("the records", || {
            self.step(reader);
            (self.lines.len() >= records).then_some(())
        });
        self
    }

    /// Settles everything with this verdict.
    fn settle(&mut self, reader: &mut Box<dyn ChunkReader>, verdict: Verdict) {
        for delivery in self.deliveries.drain(..) {
            let settled = reader.settle(delivery.token, verdict).unwrap();
            assert_eq!(settled, Settled::Done);
        }
    }
}

fn close(reader: Box<dyn ChunkReader>) {
    let report = reader.close(Instant::now() + PATIENCE);
    assert!(report.error.is_none(), "{report:?}");
}

#[test]
fn recorded_messages_decode_to_their_records() {
    let queue = Queue::new();
    queue.publish(&messages());
    let mut reader = queue.reader();
    let mut heard = Heard::default().records(&mut reader, expected().len());
    assert_eq!(heard.lines, expected());
    assert!(heard.damaged.is_empty(), "{:?}", heard.damaged);
    heard.settle(&mut reader, Verdict::Ack);
    close(reader);
    assert_eq!(queue.left(), 0, "each message is settled with its chunk");
}

#[test]
fn a_reader_that_is_started_again_knows_the_strings() {
    let queue = Queue::new();
    let messages = messages();
    queue.publish(&messages);
    let mut reader = queue.reader();
    let mut first = Heard::default().records(&mut reader, expected().len());
    first.settle(&mut reader, Verdict::Ack);
    close(reader);
    // A record alone: the name of its class came in the life before.
    let (_, last) = messages.split_at(messages.len() - 2);
    queue.publish(last);
    let mut reader = queue.reader();
    let mut second = Heard::default().records(&mut reader, 1);
    assert_eq!(second.lines, expected()[expected().len() - 1..]);
    second.settle(&mut reader, Verdict::Ack);
    close(reader);
    // Without the file nobody knows them.
    queue.publish(last);
    let mut reader = queue.reader_with(&queue.folder.path().join("other"));
    let mut third = Heard::default();
    within_patience("the damage", || {
        third.step(&mut reader);
        third.damaged.pop().map(|damaged| {
            assert!(
                damaged.reason.contains("the id of a record's class"),
                "{}",
                damaged.reason
            );
        })
    });
}

#[test]
fn types_of_ones_own_are_read_with_their_schema_and_named_without() {
    let queue = Queue::new();
    let class = "app.Own";
    let length = u32::try_from(class.len()).unwrap().to_be_bytes();
    let head = |kind: u8| [&[kind][..], &7_i64.to_be_bytes(), &[0; 4]].concat();
    let string = [&head(0xff)[..], &length, class.as_bytes()].concat();
    let record = [&head(0x01)[..], &8_i64.to_be_bytes(), &9_i64.to_be_bytes()].concat();
    let messages = [string, record];
    queue.publish(&messages);
    let mut reader = queue.reader();
    let mut heard = Heard::default();
    let reason = within_patience("the damage", || {
        heard.step(&mut reader);
        heard.damaged.pop().map(|damaged| damaged.reason)
    });
    assert!(reason.contains("app.Own"), "{reason}");
    close(reader);
    queue.publish(&messages);
    let schema = queue.folder.path().join("own.irl");
    std::fs::write(&schema, "package app event Own { long number }").unwrap();
    let uri = format!("{}&schema={}", queue.uri, schema.display());
    let mut reader = plain_reader(&uri, &queue.folder.path().join("other"));
    let mut heard = Heard::default().records(&mut reader, 1);
    let line = "{\"type\":\"app.Own\",\"timestamp\":8,\"fields\":{\"number\":9}}";
    assert_eq!(heard.lines, [line]);
    heard.settle(&mut reader, Verdict::Ack);
    close(reader);
}

#[test]
fn what_was_not_settled_comes_again_and_nothing_is_lost() {
    let queue = Queue::new();
    queue.publish(&messages());
    let mut reader = queue.reader();
    let mut heard = Heard::default().records(&mut reader, expected().len());
    // Given back: the same chunk once more.
    heard.settle(&mut reader, Verdict::Retry);
    let again = Heard::default().records(&mut reader, expected().len());
    assert_eq!(again.lines, expected());
    assert!(again.deliveries.iter().all(|it| it.redelivered));
    // Killed before anything is settled.
    drop(reader);
    let mut reader = queue.reader();
    let mut heard = Heard::default().records(&mut reader, expected().len());
    assert_eq!(heard.lines, expected());
    heard.settle(&mut reader, Verdict::Ack);
    close(reader);
    assert_eq!(queue.left(), 0);
}

#[test]
fn messages_that_cannot_be_are_put_aside_and_the_others_arrive() {
    let queue = Queue::new();
    let mut messages = messages();
    let count = expected().len();
    // Part of a record that has no beginning, nothing at all, and an item of no kind.
    messages.splice(0..0, [vec![0, 0, 0, 1], Vec::new(), vec![7; 20]]);
    queue.publish(&messages);
    let mut reader = queue.reader();
    let mut heard = Heard::default().records(&mut reader, count);
    assert_eq!(heard.lines, expected());
    assert_eq!(heard.damaged.len(), 3, "{:?}", heard.damaged);
    for damaged in &heard.damaged {
        assert!(
            damaged.reason.contains("whose beginning is missing"),
            "{damaged:?}"
        );
    }
    heard.settle(&mut reader, Verdict::Ack);
    close(reader);
    assert_eq!(queue.left(), 0);
}

#[test]
fn a_connection_that_is_lost_within_a_record_loses_nothing() {
    let node = shared_node();
    let proxy = TcpProxy::start().unwrap();
    proxy.set_target(Some(node.address()));
    let queue = Queue::new();
    let messages = messages();
    queue.publish(&messages[..3]);
    let (_, settings) = queue.uri.split_once('?').unwrap();
    let uri = format!("amqp://127.0.0.1:{}/?{settings}", proxy.address().port());
    let mut reader = plain_reader(&uri, &queue.file());
    let mut heard = Heard::default();
    let is_string = |message: &&Vec<u8>| message[0] == 0xff;
    let strings = messages[..3].iter().filter(is_string).count();
    within_patience("the strings", || {
        heard.step(&mut reader);
        let kept = std::fs::read_to_string(queue.file()).unwrap();
        (kept.lines().count() >= strings).then_some(())
    });
    // The beginning of a record, in two messages.
    (0..5).for_each(|_| heard.step(&mut reader));
    proxy.cut();
    within_patience("the next connection", || {
        heard.step(&mut reader);
        (reader.stats().reconnects >= 1).then_some(())
    });
    queue.publish(&messages[3..]);
    let mut heard = heard.records(&mut reader, expected().len());
    assert_eq!(heard.lines, expected());
    assert!(heard.damaged.is_empty(), "{:?}", heard.damaged);
    heard.settle(&mut reader, Verdict::Ack);
    close(reader);
}

#[test]
fn a_reader_needs_a_file_for_strings_and_a_queue() {
    let refused = |settings: &str| {
        let refused = receiver(&format!("amqp://localhost?queue=q&{settings}"));
        refused.unwrap_err().to_string()
    };
    let together = "format=kieker-plain and registry_file belong together";
    assert!(refused("format=kieker-plain").contains(together));
    assert!(refused("registry_file=x").contains(together));
    let schema = refused("schema=x.irl");
    assert!(
        schema.contains("schema conflicts with format=chunks"),
        "{schema}"
    );
    let stream = refused("format=kieker-plain&registry_file=x&queue_type=stream");
    assert!(stream.contains("queue_type=stream"), "{stream}");
    let uri = "amqp://localhost?queue=q&format=kieker-plain&registry_file=x";
    let writer = messages::writer(Uri::parse(uri).unwrap(), &MEDIUM);
    let error = writer.map(drop).unwrap_err();
    assert!(error.to_string().contains("is one of readers"), "{error}");
}
