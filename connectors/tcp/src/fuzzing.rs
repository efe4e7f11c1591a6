//! What the fuzz target runs, and the replay of its corpus. Not part of the interface.

use bytes::BytesMut;

use crate::frame::{ConnectionLimits, FrameHeader, Hello, Role};
use crate::incoming::{Incoming, Step};

/// Limits that a fuzzer reaches.
const LIMITS: ConnectionLimits = ConnectionLimits {
    max_chunk_bytes: 1 << 12,
    window_chunks: 8,
    window_bytes: 1 << 14,
};

/// Reads these bytes as a sender's connection, whole and in two pieces, and compares.
///
/// # Panics
///
/// The two differ, or something is handed out that was not in the bytes.
pub fn frames(data: &[u8]) {
    if let Some((hello, rest)) = data.split_first_chunk::<{ Hello::BYTES }>() {
        let read = Hello::read(hello, Role::Sender);
        assert!(read.is_err() || Hello::may_start(hello));
        let whole = read_pieces(&[rest]);
        let middle = rest.len() / 2;
        if let Some((first, second)) = rest.split_at_checked(middle) {
            assert_eq!(whole, read_pieces(&[first, second]));
        }
    }
}

/// What was read: chunks' sizes and a mark for other frames; then the error's text.
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
                Ok(Step::Ahead(_) | Step::Heartbeat) => steps.push(usize::MAX),
                Err(error) => return (steps, Some(error.to_string())),
            }
        }
    }
    let chunks: usize = steps.iter().filter(|step| **step != usize::MAX).sum();
    assert!(chunks <= given, "{chunks} bytes of chunks out of {given}");
    (steps, None)
}
