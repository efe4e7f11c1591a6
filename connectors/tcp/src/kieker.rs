//! Recognizes a writer of Kieker by its first bytes.
//!
//! Kieker's socket writers send no hello. Each of their streams begins with a string or a record,
//! in big-endian numbers:
//!
//! ```text
//! SingleSocketTcpWriter          i32 -1, i32 id, i32 length, text
//! DualSocketTcpWriter, strings   i32 id, i32 length, text
//! DualSocketTcpWriter, records   i32 id, i64 logging timestamp, fields
//! ```
//!
//! Real ids and lengths are small and real timestamps are nanoseconds of this century, or -1. So
//! other protocols whose messages begin with a length are not mistaken for Kieker's.

use std::ops::RangeInclusive;

/// Whether a peer is a writer of Kieker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Guess {
    /// It is not.
    No,
    /// It may be; more bytes are needed.
    Perhaps,
    /// It is.
    Yes,
}

/// Says what these first bytes of a peer are.
pub(crate) fn guess(bytes: &[u8]) -> Guess {
    const MARK: [u8; 4] = [0xff; 4];
    let marked = bytes.strip_prefix(&MARK);
    if marked.is_none() && MARK.starts_with(bytes) {
        return Guess::Perhaps;
    }
    let body = marked.unwrap_or(bytes);
    // The high half of an id.
    if body.iter().take(2).any(|byte| *byte != 0) {
        return Guess::No;
    }
    let (Some(id_and_length), Some(id_and_time)) = (body.first_chunk(), body.first_chunk()) else {
        return Guess::Perhaps;
    };
    let text = body.get(8..).unwrap_or_default();
    if is_string(id_and_length, text) || (marked.is_none() && is_record(id_and_time)) {
        Guess::Yes
    } else {
        Guess::No
    }
}

/// The first string of a connection is the name of a class.
fn is_string([_, _, _, _, length @ ..]: &[u8; 8], text: &[u8]) -> bool {
    const LENGTHS: RangeInclusive<u32> = 1..=0xffff;
    let length = u32::from_be_bytes(*length);
    let text = text
        .iter()
        .take(usize::try_from(length).unwrap_or(usize::MAX));
    LENGTHS.contains(&length) && text.clone().all(|byte| *byte >= 0x20 && *byte != 0x7f)
}

fn is_record([_, _, _, _, time @ ..]: &[u8; 12]) -> bool {
    /// From 2001 to 2100.
    const NANOSECONDS: RangeInclusive<i64> = 1_000_000_000_000_000_000..=4_102_444_800_000_000_000;
    let time = i64::from_be_bytes(*time);
    time == -1 || NANOSECONDS.contains(&time)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAMS: [&[u8]; 3] = [
        include_bytes!("../../../common/tests/golden/kieker/tcp-single.stream"),
        include_bytes!("../../../common/tests/golden/kieker/tcp-dual-registry-head.stream"),
        include_bytes!("../../../common/tests/golden/kieker/tcp-dual-records-head.stream"),
    ];

    #[test]
    fn streams_of_kieker_are_recognized_as_soon_as_there_are_sixteen_bytes() {
        for stream in STREAMS {
            for length in 0..stream.len().min(64) {
                let guess = guess(&stream[..length]);
                match length {
                    0..12 => assert_eq!(guess, Guess::Perhaps, "{length}"),
                    12..16 => assert_ne!(guess, Guess::No, "{length}"),
                    _ => assert_eq!(guess, Guess::Yes, "{length}"),
                }
            }
        }
    }

    #[test]
    fn other_protocols_are_not_mistaken_for_it() {
        let kafka = b"\0\0\0\x23\0\x12\0\x04\0\0\0\x01\0\x07console".as_slice();
        let kafka_produce = b"\0\0\0\x23\0\0\0\x09\0\0\0\x01\0\x07console".as_slice();
        let postgres = b"\0\0\0\x08\x04\xd2\x16\x2f\0\0\0\0".as_slice();
        for bytes in [
            b"BALERTCP\x01\0\x01\0\x01\0\0\0".as_slice(),
            b"GET / HTTP/1.1\r\n\r\n",
            b"AMQP\0\0\x09\x01",
            b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03\0",
            &[0; 64],
            &[0xff; 64],
            kafka,
            kafka_produce,
            postgres,
        ] {
            assert_eq!(guess(bytes), Guess::No, "{bytes:?}");
        }
    }
}
