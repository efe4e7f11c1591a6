//! The function that the fuzz target and the replay of its corpus run. Not part of the interface.

use bytes::BytesMut;

use crate::framing::{Incoming, Step};
use crate::headers::{ConnectionLimits, FrameHeader, Hello, Role};

/// Limits that are low enough for a fuzzer to reach.
const LIMITS: ConnectionLimits = ConnectionLimits {
    max_chunk_bytes: 1 << 12,
    window_chunks: 8,
    window_bytes: 1 << 14,
};

/// Reads the bytes as a sender's connection: as they are, and with correct checksums of hello and
/// headers. Reads each version whole and in two pieces, which must give the same result.
///
/// # Panics
///
/// The two results differ, or the decoder exceeds a bound.
pub fn frames(data: &[u8]) {
    converse(data);
    converse(&sealed(data));
}

fn converse(data: &[u8]) {
    let Some((hello, rest)) = data.split_first_chunk::<{ Hello::BYTES }>() else {
        return;
    };
    let read = Hello::read(hello, Role::Sender);
    assert!(read.is_err() || Hello::may_start(hello));
    let whole = read_pieces(&[rest]);
    if let Some((first, second)) = rest.split_at_checked(rest.len() / 2) {
        assert_eq!(whole, read_pieces(&[first, second]));
    }
}

/// Returns the bytes with correct checksums of hello and headers, as far as the lengths lead. A
/// fuzzer does not find correct checksums by chance.
fn sealed(data: &[u8]) -> Vec<u8> {
    let mut sealed = Vec::with_capacity(data.len());
    let mut rest = data;
    let mut next = Hello::BYTES;
    while let Some((head, after)) = rest.split_at_checked(next) {
        let Some((covered, _)) = head.split_last_chunk::<4>() else {
            break;
        };
        sealed.extend_from_slice(covered);
        sealed.extend_from_slice(&crc32c::crc32c(covered).to_le_bytes());
        // Two bytes of the length suffice: the limit is lower.
        let length = match covered {
            [_, _, _, _, low, high, ..] if next == FrameHeader::BYTES => [*low, *high],
            _ => [0, 0],
        };
        let payload = usize::from(u16::from_le_bytes(length)).min(after.len());
        let (payload, behind) = after.split_at_checked(payload).unwrap_or((after, &[]));
        sealed.extend_from_slice(payload);
        rest = behind;
        next = FrameHeader::BYTES;
    }
    sealed.extend_from_slice(rest);
    sealed
}

/// Returns the sizes of the decoded chunks, with a mark for each other frame, and the text of the
/// error.
fn read_pieces(pieces: &[&[u8]]) -> (Vec<usize>, Option<String>) {
    let mut incoming = Incoming::new(LIMITS, 0);
    let mut buffer = BytesMut::new();
    let (mut steps, mut given) = (Vec::new(), 0);
    for piece in pieces {
        given += piece.len();
        buffer.extend_from_slice(piece);
        loop {
            match incoming.next(&mut buffer) {
                Ok(Step::More(missing)) => {
                    assert!(missing > 0 && missing <= (1 << 12) + FrameHeader::BYTES + 40);
                    break;
                }
                Ok(Step::Bye) => return (steps, None),
                Ok(Step::Chunk(_, _, bytes)) => steps.push(bytes.len()),
                Ok(Step::Heartbeat) => steps.push(usize::MAX),
                Err(error) => return (steps, Some(error.to_string())),
            }
        }
    }
    let chunks: usize = steps.iter().filter(|step| **step != usize::MAX).sum();
    assert!(chunks <= given, "{chunks} bytes of chunks out of {given}");
    (steps, None)
}
