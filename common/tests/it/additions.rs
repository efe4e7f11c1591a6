//! A crate outside Baler adds a container and a compression.

use std::sync::Arc;

use baler_common::container::{
    BlockCompression, ChunkDecoder, ChunkDeserializer, ChunkSerializer as _, ChunkSummary,
    Compression, DecodeError, DecodeErrorKind, DecodedChunk, EncodeError, Layout, Limits,
    NativeSerializer,
};
use baler_common::record::{DynamicRecord, Field, FieldType, Schema, Value};
use baler_common::transport::ContainerKind;

use crate::arbitrary;
use crate::native_chunks::header;

/// Stores a run of one byte as its length and the byte.
#[derive(Debug)]
struct Runs {
    number: u8,
}

const RUNS: &dyn BlockCompression = &Runs { number: 0x80 };

impl BlockCompression for Runs {
    fn number(&self) -> u8 {
        self.number
    }

    fn name(&self) -> &'static str {
        "runs"
    }

    fn compress(&self, raw: &[u8], out: &mut Vec<u8>) -> Result<(), EncodeError> {
        for run in raw.chunk_by(|a, b| a == b).flat_map(|run| run.chunks(255)) {
            out.extend([u8::try_from(run.len()).unwrap(), *run.first().unwrap()]);
        }
        Ok(())
    }

    fn decompress(&self, stored: &[u8], raw: &mut [u8]) -> Result<usize, DecodeErrorKind> {
        let mut at = 0;
        for run in stored.chunks(2) {
            let broken = || DecodeErrorKind::Compression {
                message: "a run without a byte, or beyond the end".into(),
            };
            let [length, byte] = run else {
                return Err(broken());
            };
            let end = at + usize::from(*length);
            raw.get_mut(at..end).ok_or_else(broken)?.fill(*byte);
            at = end;
        }
        Ok(at)
    }
}

/// Text that is one run.
fn order() -> DynamicRecord {
    let schema = Schema::new("shop.Order", [Field::new("note", FieldType::String)]).unwrap();
    let note = "a".repeat(1_000);
    DynamicRecord::new(Arc::new(schema), None, [Value::from(note)]).unwrap()
}

fn chunk(mut serializer: NativeSerializer) -> Vec<u8> {
    let mut chunk = Vec::new();
    let batch = arbitrary::batch(&[order()]);
    serializer
        .serialize(&batch, &header(1, 2), &mut chunk)
        .unwrap();
    chunk
}

#[test]
fn chunk_of_an_added_compression_is_read_by_decoders_that_have_it() {
    let chunk = chunk(NativeSerializer::with_compression(RUNS).unwrap());
    assert!(chunk.len() < 200, "{}", chunk.len());
    let mut decoder = ChunkDecoder::default().with_compression(RUNS);
    let decoded = decoder.clone().decode(&chunk).unwrap();
    assert_eq!(arbitrary::records_of(&decoded.batch), [order()]);
    let name = "runs";
    assert_eq!(decoded.summary.compression, Compression::Added { name });
    assert_eq!(decoder.summarize(&chunk).unwrap(), decoded.summary);
    assert_eq!(decoder.decode(&chunk).unwrap(), decoded);
    let (what, number) = ("compression", 0x80);
    let unknown = DecodeErrorKind::Unknown { what, number };
    let mut without = ChunkDecoder::default();
    assert_eq!(without.summarize(&chunk).unwrap_err().kind, unknown);
    assert_eq!(without.decode(&chunk).unwrap_err().kind, unknown);
}

#[test]
fn block_that_an_added_compression_leaves_short_is_refused() {
    /// Loses the last byte.
    #[derive(Debug)]
    struct Short;

    impl BlockCompression for Short {
        fn number(&self) -> u8 {
            RUNS.number()
        }
        fn name(&self) -> &'static str {
            "short"
        }
        fn compress(&self, raw: &[u8], out: &mut Vec<u8>) -> Result<(), EncodeError> {
            RUNS.compress(raw, out)
        }
        fn decompress(&self, stored: &[u8], raw: &mut [u8]) -> Result<usize, DecodeErrorKind> {
            RUNS.decompress(stored, raw).map(|bytes| bytes - 1)
        }
    }

    let chunk = chunk(NativeSerializer::with_compression(RUNS).unwrap());
    let mut decoder = ChunkDecoder::default().with_compression(&Short);
    let kind = decoder.decode(&chunk).unwrap_err().kind;
    assert!(
        matches!(kind, DecodeErrorKind::Length { declared, found } if found == declared - 1),
        "{kind:?}"
    );
}

#[test]
fn numbers_of_own_compressions_are_not_given_away() {
    const ZSTD: &dyn BlockCompression = &Runs { number: 2 };
    let refused = NativeSerializer::with_compression(ZSTD)
        .map(drop)
        .unwrap_err();
    assert_eq!(
        refused.to_string(),
        "the compression runs has the number 2; use one from 128 to 255"
    );
}

/// Four bytes before a native chunk; or, with the magic of the native one, a container that must
/// never be used.
#[derive(Debug, Clone)]
struct Wrapped([u8; 4]);

impl ChunkDeserializer for Wrapped {
    fn magic(&self) -> [u8; 4] {
        self.0
    }

    fn summarize(&self, chunk: &[u8], _limits: &Limits) -> Result<ChunkSummary, DecodeError> {
        Ok(ChunkSummary::plain(ContainerKind::Added, "wrapped", chunk))
    }

    fn deserialize(
        &mut self,
        chunk: &[u8],
        limits: &Limits,
        _layout: Option<&mut Layout>,
    ) -> Result<DecodedChunk, DecodeError> {
        let inner = chunk.strip_prefix(&self.0).unwrap_or_default();
        let batch = ChunkDecoder::new(limits.clone()).decode(inner)?.batch;
        let summary = self.summarize(chunk, limits)?;
        Ok(DecodedChunk { summary, batch })
    }
}

#[test]
fn chunk_of_an_added_container_is_read_by_decoders_that_have_it() {
    let native = chunk(NativeSerializer::default());
    let wrapped = [b"WRAP", native.as_slice()].concat();
    let decoder = ChunkDecoder::default().with_deserializer(Wrapped(*b"WRAP"));
    let decoded = decoder.clone().decode(&wrapped).unwrap();
    assert_eq!(arbitrary::records_of(&decoded.batch), [order()]);
    assert_eq!(decoded.summary.format, "wrapped");
    assert_eq!(decoder.summarize(&wrapped).unwrap(), decoded.summary);
    let found = b"WRAP".to_vec();
    let unknown = ChunkDecoder::default().decode(&wrapped).unwrap_err();
    assert_eq!(unknown.kind, DecodeErrorKind::UnknownContainer { found });

    let mut greedy = ChunkDecoder::default().with_deserializer(Wrapped(*b"BALR"));
    assert_eq!(greedy.decode(&native).unwrap().summary.format, "columnar");
}
