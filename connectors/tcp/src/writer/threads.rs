//! The two threads of a connection: one writes what was offered, one reads acknowledgements.

use std::collections::VecDeque;
use std::io::{self, BufReader, ErrorKind, IoSlice, Read, Write};
use std::time::Duration;

use baler_common::transport::Failure;

use super::state::{Work, WriterState};
use crate::client::Socket;
use crate::error::{ProtocolError, ProtocolErrorKind, failed};
use crate::framing::Outgoing;
use crate::headers::{FrameHeader, FrameKind, Hello};

/// How many pieces one call to the operating system takes (`IOV_MAX` of Linux).
const MAX_SLICES: usize = 1024;

/// Writes what is offered until the connection ends.
pub(super) fn send(state: &WriterState, mut socket: Socket, heartbeat: Duration) {
    let mut outgoing = Outgoing::default();
    let mut chunks = VecDeque::new();
    loop {
        let work = state.wait_for_work(heartbeat, &mut chunks);
        match work {
            Work::Write => chunks.iter().for_each(|chunk| outgoing.push(chunk)),
            Work::Heartbeat => outgoing.push_short(FrameKind::Heartbeat),
            Work::Bye => outgoing.push_short(FrameKind::Bye),
            Work::Stop => return,
        }
        chunks.clear();
        if let Err(error) = write_all(&mut socket, &mut outgoing.slices()) {
            return state.fail(failed("write to", &error));
        }
        outgoing.clear();
        if matches!(work, Work::Bye) {
            return;
        }
    }
}

/// Writes every byte of the slices, many of them a call.
fn write_all(stream: &mut impl Write, mut slices: &mut [IoSlice<'_>]) -> io::Result<()> {
    while !slices.is_empty() {
        let some = slices.get(..slices.len().min(MAX_SLICES));
        match stream.write_vectored(some.unwrap_or_default()) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(written) => IoSlice::advance_slices(&mut slices, written),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Reads the receiver's frames until the connection ends.
pub(super) fn receive(state: &WriterState, socket: Socket, silence: Duration) {
    let mut offset = u64::try_from(Hello::BYTES).unwrap_or_default();
    let mut frame = [0; FrameHeader::BYTES];
    // Acknowledgements are counts: 146 of them at a time are ample.
    let mut socket = BufReader::with_capacity(4096, socket);
    let mut confirmed = false;
    let failure = loop {
        // One notification for all acknowledgements that came together.
        if confirmed && socket.buffer().len() < frame.len() {
            state.tell_confirmed();
            confirmed = false;
        }
        let broken = |kind| {
            Failure::from(&ProtocolError {
                offset,
                reading: "the receiver's frames",
                kind,
            })
        };
        if let Err(error) = socket.read_exact(&mut frame) {
            break match error.kind() {
                ErrorKind::UnexpectedEof => {
                    Failure::retry("read from", "the receiver closed the connection")
                }
                ErrorKind::WouldBlock | ErrorKind::TimedOut => {
                    let milliseconds = silence.as_millis();
                    broken(ProtocolErrorKind::Silence { milliseconds })
                }
                _ => failed("read from", &error),
            };
        }
        match take(&frame, state) {
            Ok(Some(moved)) => confirmed |= moved,
            Ok(None) => break Failure::retry("read from", "the receiver is closing"),
            Err(kind) => break broken(kind),
        }
        offset = offset.wrapping_add(u64::try_from(frame.len()).unwrap_or_default());
    };
    if confirmed {
        state.tell_confirmed();
    }
    state.fail(failure);
}

/// Takes a frame: whether it confirms something, or nothing if it is the last one.
fn take(
    frame: &[u8; FrameHeader::BYTES],
    state: &WriterState,
) -> Result<Option<bool>, ProtocolErrorKind> {
    let header = FrameHeader::read(frame)?;
    match header.kind {
        FrameKind::Acknowledgement => {
            let found = header.sequence;
            let moved = state.acknowledge(found);
            moved
                .map(Some)
                .map_err(|(low, high)| ProtocolErrorKind::Acknowledgement { found, low, high })
        }
        FrameKind::Heartbeat => Ok(Some(false)),
        FrameKind::Bye => Ok(None),
        FrameKind::Chunk => Err(ProtocolErrorKind::Invalid { found: 1 }),
        FrameKind::Refusal => Err(ProtocolErrorKind::Refused),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes a few bytes a call, and is interrupted now and then.
    struct Trickle {
        written: Vec<u8>,
        calls: usize,
    }

    impl Write for Trickle {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.calls += 1;
            if self.calls.is_multiple_of(3) {
                return Err(ErrorKind::Interrupted.into());
            }
            let some = bytes.len().min(5);
            self.written.extend_from_slice(&bytes[..some]);
            Ok(some)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn every_byte_is_written_whatever_the_system_takes() {
        let pieces: Vec<Vec<u8>> = (0..3000_usize)
            .map(|at| vec![at.to_le_bytes()[0]; 1 + at % 11])
            .collect();
        let mut slices: Vec<IoSlice<'_>> = pieces.iter().map(|piece| IoSlice::new(piece)).collect();
        let mut trickle = Trickle {
            written: Vec::new(),
            calls: 0,
        };
        write_all(&mut trickle, &mut slices).unwrap();
        assert_eq!(trickle.written, pieces.concat());
    }
}
