//! decode(encode(x)) = x in the native container, for arbitrary schemas, values and headers.

use baler_common::container::{
    ChunkDecoder, ChunkHeader, ChunkSerializer, Compression, NativeSerializer,
};
use baler_common::record::RecordBatch;
use proptest::prelude::*;

use crate::arbitrary;

/// Every compression of this build.
pub(crate) fn compressions() -> Vec<Compression> {
    let all = [
        Compression::None,
        Compression::Lz4,
        Compression::Zstd { level: 1 },
        Compression::Zstd { level: 19 },
    ];
    all.into_iter()
        .filter(|compression| match compression {
            Compression::Lz4 => cfg!(feature = "lz4"),
            Compression::None => true,
            Compression::Zstd { .. } => cfg!(feature = "zstd"),
        })
        .collect()
}

/// The batch as a chunk.
pub(crate) fn encode(
    batch: &RecordBatch,
    header: &ChunkHeader,
    compression: Compression,
) -> Vec<u8> {
    let mut chunk = Vec::new();
    let bytes = NativeSerializer::new(compression)
        .unwrap()
        .serialize(batch, header, &mut chunk)
        .unwrap();
    assert_eq!(bytes, chunk.len());
    chunk
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn every_batch_survives_every_compression(
        records in arbitrary::records(),
        header in arbitrary::header(),
    ) {
        let batch = arbitrary::batch(&records);
        let mut decoder = ChunkDecoder::default();
        for compression in compressions() {
            let chunk = encode(&batch, &header, compression);
            let (decoded, layout) = decoder.decode_with_layout(&chunk).unwrap();
            prop_assert_eq!(&arbitrary::records_of(&decoded.batch), &records);
            prop_assert_eq!(&decoded.batch, &batch);
            prop_assert_eq!(decoded.summary.header.as_ref(), Some(&header));
            prop_assert_eq!(decoded.summary.records, Some(records.len()));
            prop_assert_eq!(decoded.summary.time_span, batch.time_span());
            prop_assert_eq!(decoder.summarize(&chunk).unwrap(), decoded.summary);
            let columns: usize = layout.columns.iter().map(|column| column.bytes).sum();
            let known = layout.schema_bytes + layout.string_bytes + layout.order_bytes + columns;
            // The rest are the lengths of the tables and the numbers of their rows.
            prop_assert!(known <= layout.body_bytes);
            prop_assert!(layout.body_bytes - known <= 6 * batch.tables().len());
            prop_assert_eq!(layout.header_bytes + layout.stored_body_bytes, chunk.len());
        }
    }
}
