//! The writer before a socket, an independent decoder, and this crate's own reader.

use std::collections::HashSet;
use std::io::Read as _;
use std::net::TcpListener;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use baler_common::record::{
    BatchBuilder, DynamicRecord, Field, FieldType, RecordBatch, Schema, Value,
};
use baler_common::transport::{
    Chunk, ChunkReader, ChunkWriter, ContainerKind, Outcome, Received, RejectReason, RetryClass,
};
use baler_connector_kieker::{KiekerTcpWriter, KiekerTcpWriterConfig};
use baler_connector_testkit::within_patience;

use crate::chunks::{RealChunks, assert_written, batches, chunk, chunks, soon, write_all};
use crate::independent::{class_count, stream_records};
use crate::support::{EMPTY, Heard, data, expected, reader, send};

/// A socket that takes everything, and the bytes that it took, one entry a connection.
fn sink(connections: usize) -> (KiekerTcpWriterConfig, JoinHandle<Vec<Vec<u8>>>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let taking = thread::spawn(move || {
        let taken = listener.incoming().take(connections).map(|stream| {
            let mut bytes = Vec::new();
            stream.unwrap().read_to_end(&mut bytes).unwrap();
            bytes
        });
        taken.collect()
    });
    (KiekerTcpWriterConfig::new("127.0.0.1", port), taking)
}

fn writer(config: KiekerTcpWriterConfig) -> Box<KiekerTcpWriter> {
    Box::new(KiekerTcpWriter::new(config))
}

/// The streams that Kieker recorded, and their records.
const STREAMS: [(&str, &str); 2] = [
    ("single-ascii.bin", "single-ascii.jsonl"),
    ("single-mixed.bin", "single-mixed.jsonl"),
];

#[test]
fn independent_decoder_reads_what_kieker_wrote_and_what_the_writer_writes() {
    let mut classes = HashSet::new();
    for (stream, records) in STREAMS {
        let expected = expected(records);
        assert_eq!(stream_records(&data(stream)), expected, "{stream}");
        let chunks = chunks(&batches(&data(stream)));
        let count = chunks.len();
        let (config, taking) = sink(1);
        let (delivery_reports, report) = write_all(writer(config), chunks);
        assert_written(&delivery_reports, &report, count);
        let written = taking.join().unwrap();
        assert_eq!(stream_records(&written[0]), expected, "{stream}");
        classes.extend(expected.iter().map(|record| record["type"].to_string()));
    }
    assert_eq!(classes.len(), class_count(), "every class was written");
}

#[test]
fn reader_of_this_crate_gets_text_beyond_ascii_in_byte_lengths() {
    let mut source = reader("");
    let expected = expected("dual-unicode.jsonl");
    let mut dual = reader("?registry_port=0");
    let address = (dual.local_addr(), dual.registry_addr().unwrap());
    drop(send(address.1, &data("dual-unicode-registry.bin")));
    drop(send(address.0, &data("dual-unicode-records.bin")));
    let mut originals = Vec::new();
    within_patience("the recorded chunks", || {
        let by = Instant::now() + Duration::from_millis(20);
        if let Received::Chunk(delivery) = dual.receive(by).unwrap() {
            let ticket = u64::try_from(originals.len()).unwrap();
            let (meta, bytes) = (delivery.meta.unwrap(), delivery.bytes);
            originals.push(Chunk {
                ticket,
                meta,
                bytes,
            });
        }
        let records = originals.iter().map(|it| it.meta.records).sum::<u32>();
        (usize::try_from(records).unwrap() == expected.len()).then_some(())
    });
    let config = KiekerTcpWriterConfig::new("127.0.0.1", source.local_addr().port());
    let count = originals.len();
    let (delivery_reports, report) = write_all(writer(config), originals);
    assert_written(&delivery_reports, &report, count);
    let heard = Heard::default().until(&mut source, expected.len());
    assert_eq!(heard.records, expected);
    assert!(heard.damaged.is_empty(), "{:?}", heard.damaged);
}

#[test]
fn strings_are_sent_once_a_connection_and_again_after_reopening() {
    let batches = batches(&data("single-ascii.bin"));
    let (config, taking) = sink(2);
    let mut writer = writer(config);
    let mut delivery_reports = Vec::new();
    for _ in 0..2 {
        writer.reopen(soon()).unwrap();
        for ticket in 0..2 {
            let chunk = chunk(ticket, ContainerKind::Native, &batches[0]);
            writer.offer(chunk).unwrap();
        }
        within_patience("both confirmations", || {
            writer.delivery_reports(&mut delivery_reports).unwrap();
            (delivery_reports.len() == 2).then_some(())
        });
        delivery_reports.clear();
    }
    assert!(writer.close(soon()).error.is_none());
    let taken = taking.join().unwrap();
    let records = stream_records(&taken[0]);
    assert_eq!(records.len(), 2 * batches[0].len());
    assert_eq!(taken[0], taken[1], "each connection begins anew");
    let class = b"kieker.common.record.controlflow.BranchingRecord";
    let times = taken[0]
        .windows(class.len())
        .filter(|it| it == class)
        .count();
    assert_eq!(times, 1);
}

fn batch_of(name: &str, fields: &[(&str, FieldType, Value)]) -> RecordBatch {
    batch_of_many(name, fields, 1)
}

/// The same record this many times.
fn batch_of_many(name: &str, fields: &[(&str, FieldType, Value)], records: usize) -> RecordBatch {
    let types = fields
        .iter()
        .map(|(name, kind, _)| Field::new(*name, kind.clone()));
    let schema = Arc::new(Schema::new(name, types.collect::<Vec<_>>()).unwrap());
    let values: Vec<_> = fields.iter().map(|(.., value)| value.clone()).collect();
    let record = DynamicRecord::new(schema, Some(7), values).unwrap();
    let mut builder = BatchBuilder::new();
    for _ in 0..records {
        builder.push_dynamic(&record).unwrap();
    }
    builder.take()
}

#[test]
fn chunks_that_kieker_cannot_read_are_refused_and_the_others_arrive() {
    let unknown = batch_of("app.Order", &[("id", FieldType::I64, Value::Signed(1))]);
    let other_fields = batch_of(EMPTY, &[("id", FieldType::I64, Value::Signed(1))]);
    let large = "x".repeat((1 << 20) + 1);
    let pattern = ("pattern", FieldType::String, Value::String(large.into()));
    let too_long = batch_of(
        "kieker.common.record.remotecontrol.ActivationEvent",
        &[pattern],
    );
    let good = batch_of(EMPTY, &[]);
    let mut broken = chunk(3, ContainerKind::Native, &good);
    broken.bytes = broken.bytes.slice(..broken.bytes.len() - 1);
    let refused = [
        (
            chunk(0, ContainerKind::Native, &unknown),
            "Kieker has no record type app.Order",
        ),
        (
            chunk(1, ContainerKind::Native, &other_fields),
            "EmptyRecord has other fields",
        ),
        (
            chunk(2, ContainerKind::Kieker, &too_long),
            "1048577 bytes, more than 1048576",
        ),
        (broken, "the chunk cannot be decoded"),
    ];
    let mut sent: Vec<_> = refused.iter().map(|(chunk, _)| chunk.clone()).collect();
    sent.push(chunk(4, ContainerKind::Kieker, &good));
    let (config, taking) = sink(1);
    let writer = writer(config);
    let counts = writer.counts_handle();
    let (delivery_reports, report) = write_all(writer, sent);
    assert!(report.error.is_none(), "{report:?}");
    for ((_, message), confirmation) in refused.iter().zip(&delivery_reports) {
        let Outcome::Refused(error) = &confirmation.outcome else {
            panic!("{confirmation:?}");
        };
        assert_eq!(error.class, RetryClass::Final);
        assert!(error.message.contains(message), "{error}");
    }
    assert!(matches!(delivery_reports[4].outcome, Outcome::Confirmed));
    assert_eq!(
        (counts().refused_chunks, counts().chunks, counts().records),
        (4, 1, 1)
    );
    assert_eq!(stream_records(&taking.join().unwrap()[0]).len(), 1);
}

#[test]
fn a_reader_that_closed_is_noticed_before_the_next_chunk() {
    let good = batch_of(EMPTY, &[]);
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut writer = writer(KiekerTcpWriterConfig::new("127.0.0.1", port));
    writer.reopen(soon()).unwrap();
    drop(listener.accept().unwrap());
    writer
        .offer(chunk(0, ContainerKind::Native, &good))
        .unwrap();
    let mut delivery_reports = Vec::new();
    let error = within_patience("the break", || {
        writer.delivery_reports(&mut delivery_reports).err()
    });
    assert!(error.message.contains("closed the connection"), "{error}");
    assert!(error.is_retryable() && delivery_reports.is_empty());
    let report = writer.close(soon());
    assert_eq!(report.unconfirmed, [0]);
    drop(listener);
    let mut writer = self::writer(KiekerTcpWriterConfig::new("127.0.0.1", port));
    let error = writer.reopen(soon()).unwrap_err();
    assert!(
        error.is_retryable() && error.operation == "connect to",
        "{error}"
    );
}

#[test]
fn a_reader_that_takes_nothing_fills_the_window_and_does_not_hold_up_the_end() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut config = KiekerTcpWriterConfig::new("127.0.0.1", port);
    config.window.chunks = NonZeroU32::new(32).unwrap();
    let mut writer = writer(config);
    writer.reopen(soon()).unwrap();
    let _peer = listener.accept().unwrap();
    fill(&mut writer);
    let by = Instant::now() + Duration::from_millis(200);
    let report = writer.close(by);
    assert!(
        !report.unconfirmed.is_empty() && report.error.is_some(),
        "{report:?}"
    );
}

/// Offers chunks of 800 KB until the window is full.
pub(crate) fn fill(writer: &mut KiekerTcpWriter) {
    // Records that share one string.
    let text = Value::String("x".repeat(1 << 10).into());
    let fields = (0..50_u8).map(|_| text.clone()).collect::<Vec<_>>();
    let list = ("values", FieldType::String.list(), Value::List(fields));
    let name = |name| (name, FieldType::String, text.clone());
    let class = "kieker.common.record.remotecontrol.UpdateParameterEvent";
    let fields = [name("pattern"), name("name"), list];
    let batch = batch_of_many(class, &fields, 4_000);
    let large = chunk(0, ContainerKind::Native, &batch);
    let rejected = (0..).find_map(|ticket| {
        let large = Chunk {
            ticket,
            ..large.clone()
        };
        writer.offer(large).err()
    });
    assert!(matches!(rejected.unwrap().reason, RejectReason::Full));
}

/// A writer to a socket that a thread empties.
struct Drained;

impl baler_connector_testkit::TestMedium for Drained {
    fn fresh() -> Self {
        Self
    }

    fn is_readable(&self) -> bool {
        false
    }

    fn writer(&mut self) -> Box<dyn ChunkWriter> {
        let (config, _taking) = sink(10);
        Box::new(RealChunks(writer(config)))
    }

    fn reader(&mut self) -> Box<dyn ChunkReader> {
        Box::new(reader(""))
    }
}

mod contract {
    baler_connector_testkit::contract_tests!(super::Drained: threads);
}
