//! Chunks that were compressed with a dictionary, and readers with and without it.
#![expect(
    clippy::disallowed_methods,
    reason = "dictionaries and golden chunks are files, and UPDATE_GOLDEN is how one is made"
)]

use std::path::Path;

use baler_common::container::{
    ChunkDecoder, ChunkSerializer as _, DecodeErrorKind, Dictionaries, Dictionary, NativeSerializer,
};
use baler_common::record::{DynamicRecord, RecordBatch, Value};
use baler_connector_kieker::types::{self, WELL_KNOWN_TYPES};

use crate::arbitrary;
use crate::native_chunks::{self, encode, header};

/// Trained on chunks of 32 calls of a generated workload: `zstd --train --maxdict=2048`.
fn dictionary_bytes() -> Vec<u8> {
    std::fs::read(golden().join("calls.zdict")).unwrap()
}

fn golden() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/dictionary")
}

fn calls() -> RecordBatch {
    let catalog = types::catalog();
    let name = "kieker.common.record.controlflow.OperationExecutionRecord";
    let schema = catalog.get(name).unwrap();
    let operations = [
        "public java.lang.Object org.shop.account.controller.Discount54.updateSession(java.lang.String)",
        "public java.lang.Object org.shop.account.gateway.Discount68.loadOrder(java.lang.String, int)",
        "public java.lang.Object org.shop.account.gateway.Stock56.reserveOrder(long)",
        "public java.lang.Object org.shop.account.repository.Product32.mergeOrder(java.lang.String, int)",
    ];
    let call = |number: i64| {
        let tin = 1_700_000_000_000_000_000 + number * 1_000;
        let operation = operations.get(usize::try_from(number % 4).unwrap());
        let values = [
            Value::from(*operation.unwrap()),
            Value::from("<no-session-id>"),
            Value::Signed(number),
            Value::Signed(tin),
            Value::Signed(tin + 300 + number * 37 % 100),
            Value::from("host1"),
            Value::Signed(0),
            Value::Signed(0),
        ];
        DynamicRecord::new(schema.clone(), Some(tin + 500), values).unwrap()
    };
    arbitrary::batch(&(0..32).map(call).collect::<Vec<_>>())
}

fn with(dictionary: &Dictionary) -> Vec<u8> {
    let mut chunk = Vec::new();
    NativeSerializer::with_dictionary(3, dictionary)
        .map(|it| it.with_well_known_types(&WELL_KNOWN_TYPES))
        .unwrap()
        .serialize(&calls(), &header(6, 1), &mut chunk)
        .unwrap();
    chunk
}

fn decoder(dictionary: Dictionary) -> ChunkDecoder {
    let mut dictionaries = Dictionaries::default();
    dictionaries.insert(dictionary).unwrap();
    native_chunks::decoder().with_dictionaries(dictionaries)
}

#[test]
fn a_chunk_is_smaller_with_a_dictionary_and_read_by_whoever_has_it() {
    let dictionary = Dictionary::new(dictionary_bytes()).unwrap();
    let chunk = with(&dictionary);
    let zstd = baler_common::container::Compression::Zstd { level: 3 };
    let without = encode(&calls(), &header(6, 1), zstd);
    assert!(
        chunk.len() + 20 < without.len(),
        "{} {}",
        chunk.len(),
        without.len()
    );

    // A copy of a decoder has its dictionaries.
    let first = decoder(dictionary);
    let mut decoder = first.clone();
    drop(first);
    for chunk in [&chunk, &without, &chunk] {
        let decoded = decoder.decode(chunk).unwrap();
        assert_eq!(decoded.batch, calls());
        assert_eq!(decoded.summary.compression.name(), "zstd");
    }
}

#[test]
fn a_missing_dictionary_is_named_and_the_header_is_read_without_it() {
    let dictionary = Dictionary::new(dictionary_bytes()).unwrap();
    let chunk = with(&dictionary);
    let mut decoder = native_chunks::decoder();
    let error = decoder.decode(&chunk).unwrap_err();
    let id = dictionary.id();
    assert_eq!(error.kind, DecodeErrorKind::DictionaryMissing { id });
    assert!(
        error
            .to_string()
            .contains(&format!("the dictionary {id} is missing"))
    );
    let summary = decoder.summarize(&chunk).unwrap();
    assert_eq!(summary.identity(), Some(header(6, 1).identity));
}

#[test]
fn another_dictionary_of_the_same_id_is_noticed() {
    let bytes = dictionary_bytes();
    let chunk = with(&Dictionary::new(bytes.clone()).unwrap());
    let mut other = bytes;
    // The content is at the end.
    let content = other.len() - 1_200;
    other[content..].reverse();
    let error = decoder(Dictionary::new(other).unwrap()).decode(&chunk);
    let kind = error.unwrap_err().kind;
    assert!(
        matches!(kind, DecodeErrorKind::Compression { .. }),
        "{kind:?}"
    );
}

#[test]
fn the_golden_chunk_is_read_as_ever() {
    let path = golden().join("calls.chunk");
    let dictionary = Dictionary::new(dictionary_bytes()).unwrap();
    if std::env::var_os("UPDATE_GOLDEN").is_some() && !path.exists() {
        std::fs::write(&path, with(&dictionary)).unwrap();
    }
    let chunk = std::fs::read(&path).unwrap();
    let decoded = decoder(dictionary).decode(&chunk).unwrap();
    assert_eq!(decoded.batch, calls());
    assert_eq!(decoded.summary.header, Some(header(6, 1)));
}
