//! One poison chunk in a thousand, through every medium: quarantined byte for byte, with its place
//! and the reason, while everything else is received.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use baler_common::container::{ChunkHeader, ChunkSerializer as _, Compression, NativeSerializer};
use baler_common::record::{BatchBuilder, DynamicRecord, Field, FieldType, Schema, Value};
use baler_common::transport::uri::Uri;
use baler_common::transport::{
    Chunk, ChunkIdentity, ChunkMeta, ChunkWriter, ContainerKind, Epoch, ProducerId,
};
use baler_connector_file::{FileWriter, FileWriterConfig};
use baler_connector_tcp::{TcpConfig, TcpWriter};
use baler_connector_testkit::{PATIENCE, Pump};
#[cfg(feature = "amqp")]
use baler_faults::RabbitMqNode;
use bytes::Bytes;

use crate::support::{Background, Receiver, file_uri, read_json};

const CHUNKS: u64 = 4_000;
const RECORDS: u32 = 50;

/// Every thousandth chunk is poison, in the middle of its thousand.
fn is_poison(sequence: u64) -> bool {
    sequence % 1_000 == 500
}

fn good_records(poisoned: bool) -> u64 {
    let poison = (0..CHUNKS).filter(|it| poisoned && is_poison(*it)).count() as u64;
    (CHUNKS - poison) * u64::from(RECORDS)
}

/// The kinds in turn: random bytes, a torn chunk, one with a flipped bit, a foreign message.
fn poison(kind: u64, good: &[u8]) -> Vec<u8> {
    match kind {
        0 => {
            let mut state = 0x2545_f491_4f6c_dd1d_u64;
            let random = |_| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                state.to_le_bytes()[0]
            };
            (0..777).map(random).collect()
        }
        1 => good[..good.len() / 2].to_vec(),
        2 => {
            let mut flipped = good.to_vec();
            let middle = flipped.len() / 2;
            flipped[middle] ^= 0x10;
            flipped
        }
        _ => br#"{"event": "of somebody else", "level": "info"}"#.to_vec(),
    }
}

/// All chunks, and the poison among them.
fn chunks(poisoned: bool) -> (Vec<Chunk>, BTreeSet<Vec<u8>>) {
    let schema = Schema::new("t", vec![Field::new("number", FieldType::I64)]).unwrap();
    let schema = std::sync::Arc::new(schema);
    let mut serializer = NativeSerializer::new(Compression::None).unwrap();
    let mut put_aside = BTreeSet::new();
    let chunk = |sequence: u64| {
        let identity = ChunkIdentity {
            producer: ProducerId::new(9),
            epoch: Epoch {
                start_unix_ns: 1,
                random: 1,
            },
            lane: 0,
            sequence,
        };
        let mut batch = BatchBuilder::new();
        for record in 0..i64::from(RECORDS) {
            let number = i64::try_from(sequence).unwrap() * 1_000 + record;
            let value = vec![Value::Signed(number)];
            let record = DynamicRecord::new(schema.clone(), Some(number), value).unwrap();
            batch.push_dynamic(&record).unwrap();
        }
        let mut bytes = Vec::new();
        serializer
            .serialize(&batch.take(), &ChunkHeader::new(identity), &mut bytes)
            .unwrap();
        if poisoned && is_poison(sequence) {
            bytes = poison(sequence / 1_000, &bytes);
            put_aside.insert(bytes.clone());
        }
        Chunk {
            ticket: sequence,
            meta: ChunkMeta {
                container: ContainerKind::Native,
                records: RECORDS,
                identity,
            },
            bytes: Bytes::from(bytes),
        }
    };
    let chunks = (0..CHUNKS).map(chunk).collect();
    (chunks, put_aside)
}

fn send(writer: Box<dyn ChunkWriter>, chunks: Vec<Chunk>) {
    let mut pump = Pump::open(writer);
    pump.push(chunks);
    let by = Instant::now() + PATIENCE * 4;
    while !pump.is_done() {
        assert!(Instant::now() < by, "{pump:?}");
        pump.step();
        pump.wait(Duration::from_millis(1));
    }
    assert!(pump.refused().is_empty(), "{:?}", pump.refused());
    pump.close(Instant::now() + PATIENCE);
}

/// The quarantine holds exactly these bytes, each with where it was and what is wrong.
fn check_quarantine(folder: &Path, poison: &BTreeSet<Vec<u8>>, endpoint: &str) {
    let mut kept = BTreeSet::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|it| it != "chunk") {
            continue;
        }
        let bytes = fs::read(&path).unwrap();
        let told = read_json(&path.with_extension("json"));
        assert!(!told["reason"].as_str().unwrap().is_empty());
        assert_eq!(told["bytes"], bytes.len());
        assert!(
            told["endpoint"].as_str().unwrap().starts_with(endpoint),
            "{told}"
        );
        assert!(
            told["position"].is_u64() && told["lane"].is_string(),
            "{told}"
        );
        assert!(kept.insert(bytes), "put aside twice: {told}");
    }
    assert_eq!(&kept, poison);
}

/// Sends and receives; checks what was put aside; how long it took from the first chunk on.
fn round(
    folder: &Path,
    poisoned: bool,
    from: &str,
    endpoint: &str,
    writer: impl FnOnce(&str) -> Box<dyn ChunkWriter>,
) -> Duration {
    let (chunks, poison) = chunks(poisoned);
    let quarantine = folder.join("quarantine");
    let count = good_records(poisoned).to_string();
    let flags = [
        "--quarantine",
        quarantine.to_str().unwrap(),
        "--count",
        &count,
    ];
    let receiver = Receiver::at(from, folder, &flags);
    let started = Instant::now();
    let sending = std::thread::scope(|scope| {
        let writer = writer(&receiver.uri);
        let sender = scope.spawn(|| send(writer, chunks));
        let (status, _, stderr) = receiver.process.end();
        // Data was put into quarantine: the exit code says so.
        assert_eq!(
            status.code(),
            Some(if poisoned { 65 } else { 0 }),
            "{stderr}"
        );
        let took = started.elapsed();
        sender.join().map(|()| took)
    });
    let records = fs::read_to_string(receiver.output).unwrap();
    assert_eq!(records.lines().count() as u64, good_records(poisoned));
    if poisoned {
        check_quarantine(&quarantine, &poison, endpoint);
    }
    sending.unwrap()
}

/// Both rounds, and what poison costs.
fn compare(medium: &str, from: &str, writer: impl Fn(&str) -> Box<dyn ChunkWriter>) {
    let took = [false, true].map(|poisoned| {
        let folder = tempfile::tempdir().unwrap();
        round(folder.path(), poisoned, from, medium, &writer)
    });
    let rate = |poisoned: bool, took: Duration| good_records(poisoned) as f64 / took.as_secs_f64();
    let (without, with) = (rate(false, took[0]), rate(true, took[1]));
    println!(
        "{medium}: {without:.0} records/s without poison, {with:.0} with one chunk in a thousand: {:.2}",
        with / without
    );
}

#[test]
fn poison_over_tcp_is_put_aside_byte_for_byte() {
    compare("tcp:", "tcp://127.0.0.1:0", |uri| {
        let uri = Uri::parse(uri).unwrap();
        Box::new(TcpWriter::new(TcpConfig::from_uri(uri).unwrap()))
    });
}

#[cfg(feature = "kafka")]
#[test]
fn poison_in_a_topic_is_put_aside_byte_for_byte() {
    use baler_connector_kafka::{KafkaConfig, KafkaWriter};

    compare("kafka", "kafka+mock:records?partitions=1", |uri| {
        let uri = uri.replace("tcp://", "kafka://") + "/records";
        let config = KafkaConfig::from_uri(Uri::parse(&uri).unwrap()).unwrap();
        Box::new(KafkaWriter::new(config))
    });
}

/// A receiver that ends by itself when nothing comes, its quarantine and its records.
fn receive_until_idle(from: &str, folder: &Path, poisoned: bool) -> Duration {
    let (quarantine, output) = (folder.join("quarantine"), folder.join("records.jsonl"));
    let count = good_records(poisoned).to_string();
    let started = Instant::now();
    let receiver = Background::start(&[
        "receive",
        "--from",
        from,
        "--format",
        "json",
        "--output",
        output.to_str().unwrap(),
        "--quarantine",
        quarantine.to_str().unwrap(),
        "--count",
        &count,
    ]);
    let (status, _, stderr) = receiver.end();
    let took = started.elapsed();
    assert_eq!(
        status.code(),
        Some(if poisoned { 65 } else { 0 }),
        "{stderr}"
    );
    let records = fs::read_to_string(output).unwrap();
    assert_eq!(records.lines().count() as u64, good_records(poisoned));
    took
}

/// Stored first, received then.
fn compare_stored(
    medium: &str,
    uri: impl Fn(bool) -> String,
    writer: impl Fn(Uri) -> Box<dyn ChunkWriter>,
) {
    let took = [false, true].map(|poisoned| {
        let folder = tempfile::tempdir().unwrap();
        let uri = uri(poisoned);
        let (chunks, poison) = chunks(poisoned);
        send(writer(Uri::parse(&uri).unwrap()), chunks);
        let took = receive_until_idle(&uri, folder.path(), poisoned);
        if poisoned {
            check_quarantine(&folder.path().join("quarantine"), &poison, medium);
        }
        took
    });
    println!(
        "{medium} {:.3} s without poison, {:.3} s with one chunk in a thousand",
        took[0].as_secs_f64(),
        took[1].as_secs_f64()
    );
}

#[test]
fn poison_in_a_folder_is_put_aside_byte_for_byte() {
    let folder = tempfile::tempdir().unwrap();
    let uri = |poisoned: bool| file_uri(&folder.path().join(poisoned.to_string()));
    compare_stored("file:", uri, |uri| {
        let config = FileWriterConfig::from_uri(uri).unwrap();
        Box::new(FileWriter::new(config))
    });
}

#[cfg(feature = "amqp")]
#[test]
fn poison_in_a_queue_is_put_aside_byte_for_byte() {
    use baler_connector_amqp::{AmqpConfig, AmqpWriter};

    let node = RabbitMqNode::start().unwrap();
    let uri = |poisoned: bool| node.uri(&format!("?queue=poison-{poisoned}"));
    compare_stored("amqp:", uri, |uri| {
        Box::new(AmqpWriter::new(AmqpConfig::from_uri(uri).unwrap()))
    });
}
