//! One poison chunk in a thousand, through every medium: quarantined byte for byte, with its place
//! and the reason, while everything else is received.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader};
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
#[cfg(feature = "amqp")]
use baler_connector_testkit::faults::RabbitMqNode;
use baler_connector_testkit::{PATIENCE, Pump};
use bytes::Bytes;

use crate::support::{Background, Receiver, file_uri, read_json};

const RECORDS: u32 = 50;

/// Returns a setting from the environment. `BALER_POISON_CHUNKS` (chunks a round; default 4,000)
/// and `BALER_POISON_PAIRS` (pairs of rounds without and with poison; default 1) make these tests a
/// measurement.
fn figure(name: &str, default: u64) -> u64 {
    let told = std::env::var(name).ok();
    told.map_or(default, |text| text.parse().unwrap())
}

/// Whether a chunk is poison: every thousandth one, in the middle of its thousand.
fn is_poison(sequence: u64) -> bool {
    sequence % 1_000 == 500
}

/// Returns the kinds in turn: random bytes, a torn chunk, one with a flipped bit, a foreign
/// message. No two are alike.
fn poison(sequence: u64, good: &[u8]) -> Vec<u8> {
    match sequence / 1_000 % 4 {
        0 => {
            let mut state = 0x2545_f491_4f6c_dd1d_u64 ^ sequence;
            let random = |_| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                state.to_le_bytes()[0]
            };
            (0..777).map(random).collect()
        }
        // The identity of the chunk must still be there.
        1 => good[..good.len() - 10].to_vec(),
        2 => {
            let mut flipped = good.to_vec();
            let middle = flipped.len() / 2;
            flipped[middle] ^= 0x10;
            flipped
        }
        _ => format!(r#"{{"event": "{sequence} of somebody else", "level": "info"}}"#).into_bytes(),
    }
}

/// The chunks that a round sends.
struct Load {
    chunks: Vec<Chunk>,
    poison: BTreeSet<Vec<u8>>,
}

impl Load {
    /// Creates a load without poison.
    fn good() -> Self {
        let schema = Schema::new("t", vec![Field::new("number", FieldType::I64)]).unwrap();
        let schema = std::sync::Arc::new(schema);
        let mut serializer = NativeSerializer::new(Compression::None).unwrap();
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
        let chunks = (0..figure("BALER_POISON_CHUNKS", 4_000)).map(chunk);
        Self {
            chunks: chunks.collect(),
            poison: BTreeSet::new(),
        }
    }

    /// Creates a load with one poison chunk in a thousand.
    fn poisoned(&self) -> Self {
        let mut chunks = self.chunks.clone();
        let mut all = BTreeSet::new();
        for chunk in chunks.iter_mut().filter(|it| is_poison(it.ticket)) {
            let bytes = poison(chunk.ticket, &chunk.bytes);
            chunk.bytes = Bytes::from(bytes.clone());
            assert!(all.insert(bytes), "two poison chunks are alike");
        }
        Self {
            chunks,
            poison: all,
        }
    }

    /// Returns the number of records in sound chunks.
    fn records(&self) -> u64 {
        (self.chunks.len() - self.poison.len()) as u64 * u64::from(RECORDS)
    }

    /// Returns the receiver's exit code: data was put into quarantine, or not.
    fn exit_code(&self) -> i32 {
        if self.poison.is_empty() { 0 } else { 65 }
    }

    /// Asserts that all sound records were written, and all poison was put aside.
    fn check(&self, output: &Path, quarantine: &Path, endpoint: &str) {
        let lines = BufReader::new(fs::File::open(output).unwrap()).lines();
        assert_eq!(lines.map(Result::unwrap).count() as u64, self.records());
        if !self.poison.is_empty() {
            check_quarantine(quarantine, &self.poison, endpoint);
        }
    }
}

/// Sends the chunks, and waits until each is confirmed.
pub(crate) fn send(writer: Box<dyn ChunkWriter>, chunks: Vec<Chunk>) {
    let patience = PATIENCE * 4 + Duration::from_millis(chunks.len() as u64);
    let mut pump = Pump::open(writer);
    pump.push(chunks);
    let by = Instant::now() + patience;
    while !pump.is_done() {
        assert!(Instant::now() < by, "{pump:?}");
        pump.step();
        pump.wait(Duration::from_millis(1));
    }
    assert!(pump.refused().is_empty(), "{:?}", pump.refused());
    pump.close(Instant::now() + PATIENCE);
}

/// Asserts that the quarantine holds exactly these bytes, each with its place and the error.
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

/// Sends and receives, and checks the received and the quarantined chunks. Returns how long it took
/// from the first chunk on.
fn round(
    load: &Load,
    from: &str,
    endpoint: &str,
    writer: impl FnOnce(&str) -> Box<dyn ChunkWriter>,
) -> Duration {
    let folder = tempfile::tempdir().unwrap();
    let quarantine = folder.path().join("quarantine");
    let count = load.records().to_string();
    let flags = [
        "--quarantine",
        quarantine.to_str().unwrap(),
        "--count",
        &count,
    ];
    let receiver = Receiver::at(from, folder.path(), &flags);
    let chunks = load.chunks.clone();
    let started = Instant::now();
    let sending = std::thread::scope(|scope| {
        let writer = writer(&receiver.uri);
        let sender = scope.spawn(|| send(writer, chunks));
        let (status, _, stderr) = receiver.process.end();
        assert_eq!(status.code(), Some(load.exit_code()), "{stderr}");
        let took = started.elapsed();
        sender.join().map(|()| took)
    });
    load.check(&receiver.output, &quarantine, endpoint);
    sending.unwrap()
}

/// Receives stored chunks until it has all of them. Returns how long it took.
fn receive_stored(load: &Load, from: &str, endpoint: &str) -> Duration {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let (quarantine, output) = (path("quarantine"), path("records.jsonl"));
    let count = load.records().to_string();
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
    assert_eq!(status.code(), Some(load.exit_code()), "{stderr}");
    load.check(&output, &quarantine, endpoint);
    took
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

/// Rounds without and with poison in turn, each pair the other way round than the one before it,
/// and what poison costs.
fn compare(medium: &str, mut round: impl FnMut(u64, &Load) -> Duration) {
    let good = Load::good();
    let poisoned = good.poisoned();
    let mut pairs = Vec::new();
    for pair in 0..figure("BALER_POISON_PAIRS", 1) {
        let mut rate = |load: &Load| {
            let took = round(pair, load).as_secs_f64();
            (load.records() as f64 / took, took)
        };
        let (without, with) = if pair % 2 == 0 {
            let without = rate(&good);
            (without, rate(&poisoned))
        } else {
            let with = rate(&poisoned);
            (rate(&good), with)
        };
        println!(
            "{medium} {:.0} records/s without poison ({:.1} s), {:.0} with one chunk in a thousand \
             ({:.1} s): {:.3}",
            without.0,
            without.1,
            with.0,
            with.1,
            with.0 / without.0
        );
        pairs.push((without.0, with.0));
    }
    println!(
        "{medium} median of {} pairs of {} chunks: {:.0} without, {:.0} with, ratio {:.3}",
        pairs.len(),
        good.chunks.len(),
        median(pairs.iter().map(|(without, _)| *without).collect()),
        median(pairs.iter().map(|(_, with)| *with).collect()),
        median(pairs.iter().map(|(without, with)| with / without).collect())
    );
}

#[test]
fn poison_over_tcp_is_put_aside_byte_for_byte() {
    compare("tcp:", |_, load| {
        round(load, "tcp://127.0.0.1:0", "tcp:", |uri| {
            let uri = Uri::parse(uri).unwrap();
            Box::new(TcpWriter::new(TcpConfig::from_uri(uri).unwrap()))
        })
    });
}

#[cfg(feature = "kafka")]
#[test]
fn poison_in_a_topic_is_put_aside_byte_for_byte() {
    use baler_connector_kafka::{KafkaConfig, KafkaWriter};

    compare("kafka:", |_, load| {
        round(load, "kafka+mock:records?partitions=1", "kafka", |uri| {
            let uri = uri.replace("tcp://", "kafka://") + "/records";
            let config = KafkaConfig::from_uri(Uri::parse(&uri).unwrap()).unwrap();
            Box::new(KafkaWriter::new(config))
        })
    });
}

#[test]
fn poison_in_a_folder_is_put_aside_byte_for_byte() {
    compare("file:", |_, load| {
        let folder = tempfile::tempdir().unwrap();
        let uri = file_uri(folder.path());
        let config = FileWriterConfig::from_uri(Uri::parse(&uri).unwrap()).unwrap();
        send(Box::new(FileWriter::new(config)), load.chunks.clone());
        receive_stored(load, &uri, "file:")
    });
}

#[cfg(feature = "amqp")]
#[test]
fn poison_in_a_queue_of_rabbitmq_is_put_aside_byte_for_byte() {
    use baler_connector_amqp::{AmqpConfig, AmqpWriter};

    let node = RabbitMqNode::start().unwrap();
    compare("amqp:", |pair, load| {
        let uri = node.uri(&format!("?queue=poison-{pair}-{}", load.poison.len()));
        let config = AmqpConfig::from_uri(Uri::parse(&uri).unwrap()).unwrap();
        send(Box::new(AmqpWriter::new(config)), load.chunks.clone());
        receive_stored(load, &uri, "amqp:")
    });
}
