//! Larger chunks never take more bytes a record.

use std::sync::Arc;

use baler_common::container::{ChunkHeader, ChunkSerializer as _, Compression, NativeSerializer};
use baler_common::record::{BatchBuilder, Field, FieldType, NO_TIMESTAMP, RowWriter, Schema};
use baler_common::transport::{ChunkIdentity, Epoch, ProducerId};
use baler_connector_file::lines::Inference;
use baler_connector_kieker::types::WELL_KNOWN_TYPES;
use baler_rig::workload::{Call, Executions, Random, Workload};

const RECORDS: usize = 16_384;
const SIZES: [usize; 11] = [16, 32, 64, 128, 200, 256, 512, 1_024, 2_048, 4_096, 8_192];

/// How much more a larger chunk may take, in percent.
const TOLERANCE: usize = 2;

/// Adds the record with a number to a batch.
type Push = Box<dyn FnMut(usize, &mut BatchBuilder)>;

#[test]
fn calls_take_no_more_bytes_in_larger_chunks() {
    assert_monotone(|| {
        let mut workload = Workload::new(1);
        let calls: Vec<Call> = workload.by_ref().take(RECORDS).collect();
        let mut executions = Executions::new(workload.names());
        Box::new(move |number, batch| batch.push(executions.of(&calls[number])).unwrap())
    });
}

#[test]
fn lines_of_text_take_no_more_bytes_in_larger_chunks() {
    assert_monotone(|| {
        let fields = [Field::new("line", FieldType::String)];
        let schema = Arc::new(Schema::new("text", fields).unwrap());
        Box::new(move |number, batch| {
            let mut row = Vec::new();
            let line = format!("record number {number} of a steady stream");
            RowWriter::new(&mut row).str(&line);
            batch.push_row(&schema, NO_TIMESTAMP, &row).unwrap();
        })
    });
}

#[test]
fn a_json_log_takes_no_more_bytes_in_larger_chunks() {
    assert_monotone(|| {
        let mut inference = Inference::new("type");
        let mut random = Random::new(1);
        Box::new(move |number, batch| {
            let line = json_line(number, &mut random);
            inference.add(&line, None, batch).unwrap();
        })
    });
}

/// A line of a service's log: words that come again and again, a message with numbers, and an id
/// that shares nothing with others.
fn json_line(number: usize, random: &mut Random) -> String {
    let mut below = |bound| random.below(bound);
    let (second, millis) = (number / 250 % 60, number % 250 * 4);
    let (minute, level) = (number / 15_000, ["INFO", "INFO", "INFO", "WARN"][below(4)]);
    let (order, customer, taken) = (100_000 + below(900_000), below(5_000), below(900));
    let message = match below(5) {
        0 => format!("order {order} of customer {customer} was paid in {taken} ms"),
        1 => format!("customer {customer} put item {order} into the cart"),
        2 => format!("GET /orders/{order}/items took {taken} ms"),
        3 => format!("no stock for item {order}: {taken} left in the warehouse"),
        _ => format!(
            "user-{customer} logged in from 10.0.{}.{}",
            below(256),
            below(256)
        ),
    };
    let (high, low) = (below(1 << 32), below(1 << 48));
    format!(
        r#"{{"time":"2026-11-22T10:{minute:02}:{second:02}.{millis:03}Z","level":"{level}","logger":"shop.checkout.OrderService","message":"{message}","request":"{high:08x}-{:04x}-4{:03x}-a{:03x}-{low:012x}","customer":"user-{customer}","ms":{taken}}}"#,
        below(1 << 16),
        below(1 << 12),
        below(1 << 12),
    )
}

fn assert_monotone(records: impl Fn() -> Push) {
    for compression in [Compression::None, Compression::Zstd { level: 1 }] {
        let bytes = SIZES.map(|size| encoded(&mut records(), size, compression));
        let table = SIZES.iter().zip(&bytes);
        let table: Vec<_> = table
            .map(|(size, bytes)| format!("{size}: {}", bytes / RECORDS))
            .collect();
        let mut least = usize::MAX;
        for bytes in bytes {
            assert!(
                bytes / (100 + TOLERANCE) <= least / 100,
                "bytes a record by size, {compression}: {}",
                table.join(", ")
            );
            least = least.min(bytes);
        }
    }
}

/// The bytes of all records in chunks of this size.
fn encoded(push: &mut Push, size: usize, compression: Compression) -> usize {
    let mut serializer = NativeSerializer::new(compression).unwrap();
    serializer.set_well_known_types(&WELL_KNOWN_TYPES);
    let header = ChunkHeader::new(ChunkIdentity {
        producer: ProducerId::new(1),
        epoch: Epoch {
            start_unix_ns: 1_700_000_000_000_000_000,
            random: 1,
        },
        lane: 0,
        sequence: 1_000,
    });
    let mut batch = BatchBuilder::new();
    let mut chunks = Vec::new();
    for number in 0..RECORDS {
        push(number, &mut batch);
        if batch.len() == size || number + 1 == RECORDS {
            let written = serializer.serialize(batch.batch(), &header, &mut chunks);
            written.unwrap();
            batch.clear();
        }
    }
    chunks.len()
}
