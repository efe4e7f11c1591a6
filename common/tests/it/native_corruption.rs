//! Broken native chunks: every flip and every truncation is reported, without other effects.

use baler_common::container::{DecodeErrorKind, native_identity};

use crate::arbitrary;
use crate::native_chunks::{PREFIX_BYTES, decoder, reseal, varied};

const CHUNKS: usize = 240;

#[test]
fn every_single_bit_flip_is_detected() {
    let mut decoder = decoder();
    let mut flips = 0_u32;
    for mut chunk in varied(CHUNKS) {
        decoder.decode(&chunk).unwrap();
        for index in 0..chunk.len() {
            for bit in 0..8 {
                chunk[index] ^= 1 << bit;
                assert!(decoder.decode(&chunk).is_err(), "bit {bit} of byte {index}");
                assert!(decoder.summarize(&chunk).is_err());
                chunk[index] ^= 1 << bit;
                flips += 1;
            }
        }
    }
    assert!(flips > 200_000, "{flips} flips prove little");
}

#[test]
fn every_truncation_is_detected() {
    let mut decoder = decoder();
    for chunk in varied(CHUNKS) {
        for end in 0..chunk.len() {
            let error = decoder.decode(&chunk[..end]).unwrap_err();
            let told = match end {
                0..4 => matches!(error.kind, DecodeErrorKind::UnknownContainer { .. }),
                _ => matches!(error.kind, DecodeErrorKind::Ends { .. }),
            };
            assert!(told, "{end} of {} bytes: {error}", chunk.len());
        }
    }
}

#[test]
fn the_identity_is_read_without_the_rest_of_a_chunk() {
    let decoder = decoder();
    for chunk in varied(20) {
        let identity = decoder.summarize(&chunk).unwrap().identity();
        assert!(identity.is_some());
        assert_eq!(native_identity(&chunk), identity);
        assert_eq!(native_identity(&chunk[..24]), None);
        assert_eq!(native_identity(&chunk[1..]), None);
    }
    assert_eq!(native_identity(b"KIKA"), None);
}

#[test]
fn bytes_behind_a_chunk_are_refused() {
    let mut decoder = decoder();
    for chunk in varied(20) {
        let error = decoder.decode(&[&chunk[..], &[0]].concat()).unwrap_err();
        assert_eq!(error.kind, DecodeErrorKind::Trailing { bytes: 1 });
        assert_eq!(error.offset, chunk.len());
        let error = decoder
            .decode(&[&chunk[..], &chunk[..]].concat())
            .unwrap_err();
        assert_eq!(error.kind, DecodeErrorKind::Trailing { bytes: chunk.len() });
    }
}

/// The checksums protect against accidents, not against an attacker who can compute them.
#[test]
fn flips_under_a_right_checksum_yield_an_error_or_records_that_can_be_read() {
    let mut decoder = decoder();
    let (mut refused, mut taken) = (0_u32, 0_u32);
    for mut chunk in varied(CHUNKS) {
        for index in PREFIX_BYTES..chunk.len().saturating_sub(4) {
            for bit in [0, 3, 7] {
                chunk[index] ^= 1 << bit;
                reseal(&mut chunk);
                match decoder.decode(&chunk) {
                    Err(_) => refused += 1,
                    Ok(decoded) => {
                        let records = arbitrary::records_of(&decoded.batch);
                        assert_eq!(Some(records.len()), decoded.summary.records);
                        taken += 1;
                    }
                }
                chunk[index] ^= 1 << bit;
            }
        }
    }
    assert!(
        refused > 10_000 && taken > 10_000,
        "{refused} refused, {taken} taken"
    );
}
