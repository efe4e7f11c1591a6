//! The two threads of a connection: one writes what was offered, one reads acknowledgements.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, IoSlice, Read, Write};
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
pub(super) fn receive(state: &WriterState, mut socket: Socket, silence: Duration) {
    let mut frames = Frames::default();
    let failure = loop {
        match socket.read(frames.space()) {
            Ok(0) => break Failure::retry("read from", "the receiver closed the connection"),
            Ok(read) => {
                if let Err(failure) = frames.take(read, state) {
                    break failure;
                }
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                let kind = ProtocolErrorKind::Silence {
                    milliseconds: silence.as_millis(),
                };
                break frames.failure(kind);
            }
            Err(error) => break failed("read from", &error),
        }
    };
    state.fail(failure);
}

/// Cuts what was read into frames, all of which have the size of a header.
#[derive(Debug)]
struct Frames {
    bytes: Vec<u8>,
    filled: usize,
    offset: u64,
}

impl Default for Frames {
    fn default() -> Self {
        Self {
            // Acknowledgements are counts: 146 of them a call are ample.
            bytes: vec![0; 4096],
            filled: 0,
            offset: u64::try_from(Hello::BYTES).unwrap_or_default(),
        }
    }
}

impl Frames {
    /// Where to read to; never empty.
    fn space(&mut self) -> &mut [u8] {
        self.bytes.get_mut(self.filled..).unwrap_or_default()
    }

    /// Takes what was read.
    fn take(&mut self, read: usize, state: &WriterState) -> Result<(), Failure> {
        self.filled += read;
        let filled = self.bytes.get(..self.filled).unwrap_or_default();
        let (frames, rest) = filled.as_chunks::<{ FrameHeader::BYTES }>();
        let left = rest.len();
        let mut confirmed = false;
        let mut result = Ok(());
        for frame in frames {
            match self.take_frame(frame, state) {
                Ok(moved) => confirmed |= moved,
                Err(failure) => {
                    result = Err(failure);
                    break;
                }
            }
        }
        if confirmed {
            state.tell_confirmed();
        }
        self.bytes.copy_within(self.filled - left..self.filled, 0);
        let taken = u64::try_from(self.filled - left).unwrap_or_default();
        self.offset = self.offset.wrapping_add(taken);
        self.filled = left;
        result
    }

    /// Takes one frame; whether it confirmed something.
    fn take_frame(
        &self,
        frame: &[u8; FrameHeader::BYTES],
        state: &WriterState,
    ) -> Result<bool, Failure> {
        let header = FrameHeader::read(frame).map_err(|kind| self.failure(kind))?;
        match header.kind {
            FrameKind::Acknowledgement => {
                let found = header.sequence;
                state.acknowledge(found).map_err(|(low, high)| {
                    self.failure(ProtocolErrorKind::Acknowledgement { found, low, high })
                })
            }
            FrameKind::Heartbeat => Ok(false),
            FrameKind::Bye => Err(Failure::retry("read from", "the receiver is closing")),
            FrameKind::Refusal => Err(self.failure(ProtocolErrorKind::Refused)),
            FrameKind::Chunk => Err(self.failure(ProtocolErrorKind::Invalid { found: 1 })),
        }
    }

    fn failure(&self, kind: ProtocolErrorKind) -> Failure {
        Failure::from(&ProtocolError {
            offset: self.offset,
            reading: "the receiver's frames",
            kind,
        })
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
