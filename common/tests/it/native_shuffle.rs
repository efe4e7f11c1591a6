//! Chunks are self-contained: any decoder decodes any of them, in any order.

use std::collections::HashMap;

use baler_common::record::BatchBuilder;
use proptest::prelude::*;

use crate::arbitrary;
use crate::native_chunks::{batch_of, compressions, decoder, encode, header, service_records};

const PRODUCERS: u64 = 8;
const CHUNKS_EACH: u64 = 12;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn chunks_dealt_at_random_to_fresh_decoders_are_all_decoded(
        decoders in 1_usize..=16,
        dealt in Just((0..PRODUCERS * CHUNKS_EACH).collect::<Vec<_>>()).prop_shuffle(),
        kept in 1_usize..=96,
        deal in proptest::collection::vec(any::<prop::sample::Index>(), 96),
    ) {
        let mut chunks = Vec::new();
        let mut sent = HashMap::new();
        for producer in 0..PRODUCERS {
            // Every producer keeps its builder, as a collector does.
            let mut builder = BatchBuilder::new();
            let mut compressions = compressions().into_iter().cycle();
            for sequence in 0..CHUNKS_EACH {
                let records = service_records(producer, sequence * 5 % 23);
                let header = header(producer.into(), sequence);
                let batch = batch_of(&mut builder, &records);
                chunks.push(encode(&batch, &header, compressions.next().unwrap()));
                sent.insert(header.identity, records);
            }
        }
        let mut decoders = vec![decoder(); decoders];
        for (number, index) in dealt.into_iter().zip(deal).take(kept) {
            let number = usize::try_from(number).unwrap();
            let decoder = index.get_mut(&mut decoders);
            let decoded = decoder.decode(&chunks[number]).unwrap();
            let identity = decoded.summary.identity().unwrap();
            prop_assert_eq!(&arbitrary::records_of(&decoded.batch), &sent[&identity]);
        }
    }
}
