//! Cut and altered segments: every sound chunk is read, and lost bytes are reported and kept.

use baler_connector_file::headers::{FrameHeader, SEGMENT_HEADER_BYTES};
use baler_connector_file::{FileWriter, FileWriterConfig, segment_name};
use proptest::prelude::*;

use crate::segments::support::{TAG, put, read_all, segment, segments, set_aside, soon};

use baler_common::transport::ChunkWriter;

fn some() -> Vec<Vec<u8>> {
    [&b"one"[..], b"", b"the third is longer"]
        .map(<[u8]>::to_vec)
        .into()
}

/// Opens and closes a writer. Returns its counts.
fn recover(folder: &std::path::Path) -> baler_connector_file::WriterStats {
    let mut writer = Box::new(FileWriter::new(FileWriterConfig::new(folder)));
    writer.reopen(soon()).unwrap();
    let stats = writer.counts();
    assert!(writer.close(soon()).error.is_none());
    stats
}

#[test]
fn segment_cut_anywhere_yields_every_chunk_before_the_cut() {
    let chunks = some();
    let whole = segment(0, &chunks);
    for cut in 0..=whole.bytes.len() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let bytes = &whole.bytes[..cut];
        put(folder, 0, bytes);
        let sound = whole.ends.iter().filter(|end| **end <= cut).count();
        let header = if cut < SEGMENT_HEADER_BYTES {
            0
        } else {
            SEGMENT_HEADER_BYTES
        };
        let sound_bytes = sound.checked_sub(1).map_or(header, |last| whole.ends[last]);
        let torn = &bytes[sound_bytes..];

        let (read, damaged) = read_all(folder);
        assert_eq!(read, chunks[..sound], "cut at {cut}");
        let told: Vec<u8> = damaged
            .iter()
            .flat_map(|piece| piece.bytes.to_vec())
            .collect();
        assert_eq!(told, torn, "cut at {cut}");
        assert!(
            damaged
                .iter()
                .all(|piece| piece.origin.position == sound_bytes as u64)
        );

        let stats = recover(folder);
        assert_eq!(
            stats.damaged_pieces,
            u64::from(!torn.is_empty()),
            "cut at {cut}"
        );
        assert_eq!(stats.damaged_bytes, torn.len() as u64);
        let kept = match torn.is_empty() {
            true => vec![],
            false => vec![(
                format!("{}-{sound_bytes}.bin", segment_name(0)),
                torn.to_vec(),
            )],
        };
        assert_eq!(set_aside(folder), kept, "cut at {cut}");
        let (read, damaged) = read_all(folder);
        assert_eq!(
            (read.as_slice(), damaged.len()),
            (&chunks[..sound], 0),
            "cut at {cut}"
        );
        if cut % 16 == 0 {
            // A second life finds nothing to do.
            assert_eq!(recover(folder).damaged_pieces, 0);
        }
    }
}

#[test]
fn flipped_bit_in_any_byte_costs_one_chunk_and_is_told() {
    let chunks = some();
    let whole = segment(0, &chunks);
    let folder = tempfile::tempdir().unwrap();
    // One bit of each byte, another one each time; the headers' tests flip every bit.
    for bit in (0..whole.bytes.len()).map(|byte| byte * 8 + byte * 3 % 8) {
        let mut bytes = whole.bytes.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        put(folder.path(), 0, &bytes);
        // The number of the chunk that is hit; none if the segment's header is hit.
        let hit = match bit / 8 {
            byte if byte < SEGMENT_HEADER_BYTES => None,
            byte => whole.ends.iter().position(|end| byte < *end),
        };
        let expected: Vec<_> = (0..chunks.len())
            .filter(|at| Some(*at) != hit)
            .map(|at| chunks[at].clone())
            .collect();
        let (read, damaged) = read_all(folder.path());
        assert_eq!(read, expected, "bit {bit}");
        let start = hit.map_or(0, |hit| match hit {
            0 => SEGMENT_HEADER_BYTES,
            _ => whole.ends[hit - 1],
        });
        let end = hit.map_or(SEGMENT_HEADER_BYTES, |hit| whole.ends[hit]);
        assert_eq!(damaged.len(), 1, "bit {bit}: {damaged:?}");
        assert_eq!(damaged[0].bytes, bytes[start..end], "bit {bit}");
        assert_eq!(damaged[0].origin.position, start as u64);
        assert_eq!(&*damaged[0].origin.lane, segment_name(0));
    }
}

#[test]
fn frames_inside_a_damaged_chunk_are_not_taken_for_frames() {
    // A chunk that holds a frame of another folder, and a chunk with a frame that was already
    // passed.
    let first = segment(0, &some()[..1]);
    let again = &first.bytes[SEGMENT_HEADER_BYTES..];
    let meta = baler_connector_testkit::ChunkSource::new(1)
        .next(0, 20)
        .meta;
    let foreign = FrameHeader::new(TAG ^ 1, 9, meta, b"foreign").unwrap();
    let nested = [&foreign.encode()[..], b"foreign", again].concat();
    let whole = segment(0, &[some()[0].clone(), nested, some()[2].clone()]);
    let mut bytes = whole.bytes.clone();
    bytes[whole.ends[0]] ^= 1;
    let folder = tempfile::tempdir().unwrap();
    put(folder.path(), 0, &bytes);
    let (read, damaged) = read_all(folder.path());
    assert_eq!(read, [some()[0].clone(), some()[2].clone()]);
    assert_eq!(damaged.len(), 1);
    assert_eq!(damaged[0].bytes, bytes[whole.ends[0]..whole.ends[1]]);
}

#[test]
fn wholly_corrupt_segment_is_moved_aside_and_its_number_used_again() {
    let folder = tempfile::tempdir().unwrap();
    put(folder.path(), 5, &[0; 100_000]);
    let pump = crate::segments::support::write(&FileWriterConfig::new(folder.path()), 1);
    assert!(pump.close(soon()).1.error.is_none());
    assert_eq!(set_aside(folder.path())[0].1.len(), 100_000);
    assert_eq!(segments(folder.path()), [5]);
    assert_eq!(read_all(folder.path()).0.len(), 1);
}

#[test]
fn damage_in_an_older_segment_does_not_hide_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let first = segment(0, &some());
    put(folder.path(), 0, &first.bytes[..first.bytes.len() - 3]);
    put(folder.path(), 3, &segment(3, &some()).bytes);
    let (read, damaged) = read_all(folder.path());
    let expected: Vec<_> = some()[..2].iter().cloned().chain(some()).collect();
    assert_eq!(read, expected);
    assert_eq!(damaged.len(), 1);
}

#[test]
fn declared_length_beyond_the_file_is_damage_and_nothing_is_allocated_for_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut bytes = segment(0, &some()[..1]).bytes;
    let start = SEGMENT_HEADER_BYTES;
    // A header whose checksum is right and whose length is 4 GiB.
    bytes[start + 16..start + 20].copy_from_slice(&u32::MAX.to_le_bytes());
    let crc = crc32c::crc32c(&bytes[start..start + 72]).to_le_bytes();
    bytes[start + 72..start + 76].copy_from_slice(&crc);
    put(folder.path(), 0, &bytes);
    let (read, damaged) = read_all(folder.path());
    assert!(read.is_empty());
    assert_eq!(damaged[0].bytes, bytes[start..]);
    assert!(
        damaged[0].reason.contains("cut short"),
        "{}",
        damaged[0].reason
    );
}

#[derive(Debug, Clone)]
struct Overwrite {
    at: prop::sample::Index,
    with: Vec<u8>,
}

fn chunk() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        8 => prop::collection::vec(any::<u8>(), 0..300),
        // Larger than one read.
        1 => (any::<u8>(), 260_000..600_000_usize).prop_map(|(byte, length)| vec![byte; length]),
        // Holds frames of the same folder and of another, and markers.
        2 => (0..8_u64).prop_map(|first| {
            let inner = vec![b"inner".to_vec(); 3];
            let mut bytes = segment(first, &inner).bytes;
            bytes.iter_mut().skip(36).step_by(81).for_each(|tag| *tag ^= 1);
            bytes
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 80, ..ProptestConfig::default() })]

    /// Frames without damage are all read, in order. Every byte is read or reported as damaged. The
    /// same holds after recovery, and a new chunk follows.
    #[test]
    fn untouched_chunks_survive_any_damage(
        chunks in prop::collection::vec(chunk(), 1..12),
        overwrites in prop::collection::vec(
            (any::<prop::sample::Index>(), prop::collection::vec(any::<u8>(), 1..400))
                .prop_map(|(at, with)| Overwrite { at, with }),
            0..4,
        ),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let whole = segment(0, &chunks);
        let mut bytes = whole.bytes.clone();
        for overwrite in &overwrites {
            let at = overwrite.at.index(bytes.len());
            for (byte, with) in bytes[at..].iter_mut().zip(&overwrite.with) {
                *byte = *with;
            }
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(whole.bytes.len()));
        }
        put(folder.path(), 0, &bytes);
        let starts = [SEGMENT_HEADER_BYTES].into_iter().chain(whole.ends.iter().copied());
        let expected: Vec<Vec<u8>> = starts
            .zip(&whole.ends)
            .zip(&chunks)
            .filter(|((start, end), _)| {
                bytes.get(*start..**end) == Some(&whole.bytes[*start..**end])
            })
            .map(|(_, chunk)| chunk.clone())
            .collect();

        let (read, damaged) = read_all(folder.path());
        prop_assert!(read == expected, "{} of {} chunks", read.len(), expected.len());
        let header_is_sound =
            bytes.get(..SEGMENT_HEADER_BYTES) == Some(&whole.bytes[..SEGMENT_HEADER_BYTES]);
        let accounted = damaged.iter().map(|piece| piece.bytes.len()).sum::<usize>()
            + read.iter().map(|chunk| chunk.len() + 76).sum::<usize>()
            + if header_is_sound { SEGMENT_HEADER_BYTES } else { 0 };
        prop_assert_eq!(accounted, bytes.len());

        let pump = crate::segments::support::write(&FileWriterConfig::new(folder.path()), 1);
        prop_assert!(pump.close(soon()).1.error.is_none());
        let (again, _) = read_all(folder.path());
        prop_assert!(again[..again.len() - 1] == expected);
        prop_assert_eq!(again.last().map(Vec::len), Some(64));
    }
}
