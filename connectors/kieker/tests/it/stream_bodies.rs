//! The body of the fuzz target `stream`, and the replay of its corpus on stable.

use baler_common::record::RecordRef;
use baler_connector_kieker::container::{self, KiekerStream, KiekerStreamEncoder, StreamStep};
use baler_connector_kieker::types;

/// Cuts the bytes as a stream of each kind, whole and in pieces; every chunk must decode, and be a
/// stream again.
pub(crate) fn stream(bytes: &[u8]) {
    let Some((kind, bytes)) = bytes.split_first() else {
        return;
    };
    for step in [usize::MAX, usize::from(*kind >> 2).max(1)] {
        let catalog = types::shared_catalog();
        let mut stream = match kind & 3 {
            0 => KiekerStream::with_registry_apart(catalog),
            1 => KiekerStream::of_messages(catalog, 0),
            _ => KiekerStream::new(catalog),
        };
        if kind & 3 == 0 {
            let (strings, records) = bytes.split_at(bytes.len() / 2);
            if stream.register(strings).1.is_ok() {
                cut(&mut stream, records, step);
            }
        } else {
            cut(&mut stream, bytes, step);
        }
    }
}

fn cut(stream: &mut KiekerStream, bytes: &[u8], step: usize) {
    let mut left = Vec::new();
    for part in bytes.chunks(step.min(bytes.len()).max(1)) {
        left.extend_from_slice(part);
        loop {
            let (taken, step) = stream.cut(&left);
            left.drain(..taken);
            assert!(stream.memory() <= 80 << 20);
            match step {
                Ok(StreamStep::Full) => check(stream),
                Ok(_) => break,
                Err(_) => return check(stream),
            }
        }
    }
    check(stream);
}

/// Takes the chunk, if there is one.
fn check(stream: &mut KiekerStream) {
    let Some(chunk) = stream.take_chunk() else {
        return;
    };
    let decoded = container::decoder().decode(&chunk.bytes).unwrap();
    assert_eq!(decoded.batch.len(), usize::try_from(chunk.records).unwrap());
    let (mut strings, mut records) = (Vec::new(), Vec::new());
    let mut encoder = KiekerStreamEncoder::new();
    let register = |id, text: &str| {
        KiekerStreamEncoder::push_registration(id, text, &mut strings);
    };
    encoder
        .encode(&decoded.batch, register, &mut records)
        .unwrap();
    strings.append(&mut records);
    let mut again = KiekerStream::new(types::shared_catalog());
    let (mut batches, mut left) = (Vec::new(), strings.as_slice());
    while !left.is_empty() {
        let (taken, step) = again.cut(left);
        step.unwrap();
        left = left.split_at(taken).1;
        let chunk = again.take_chunk();
        batches.extend(chunk.map(|it| container::decoder().decode(&it.bytes).unwrap().batch));
    }
    let records = batches.iter().flat_map(|batch| batch.records());
    assert!(records.map(shown).eq(decoded.batch.records().map(shown)));
}

/// A record with all of its values.
fn shown(record: RecordRef<'_>) -> String {
    let values = record.fields().values().map(|(_, value)| value.to_value());
    let values: Vec<_> = values.collect();
    format!("{} {:?} {values:?}", record.type_name(), record.timestamp())
}

#[test]
fn the_corpus_of_stream_is_cut_without_a_panic() {
    let corpus = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/stream");
    let paths = std::fs::read_dir(corpus).unwrap();
    let paths: Vec<_> = paths.map(|entry| entry.unwrap().path()).collect();
    for path in &paths {
        let bytes = std::fs::read(path).unwrap();
        let replayed = std::panic::catch_unwind(|| stream(&bytes));
        assert!(replayed.is_ok(), "{}", path.display());
    }
    assert!(paths.len() >= 10, "the corpus is gone");
}
