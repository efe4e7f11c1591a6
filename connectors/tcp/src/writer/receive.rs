//! The thread that reads acknowledgements.

use std::io::{ErrorKind, Read};
use std::time::Duration;

use baler_common::transport::Failure;

use super::link::Link;
use crate::client::Socket;
use crate::error::{ProtocolError, ProtocolErrorKind, failed};
use crate::frame::{FrameHeader, FrameKind};
use crate::hello::Hello;

/// Reads the receiver's frames until the connection ends.
pub(super) fn run(link: &Link, mut socket: Socket, silence: Duration) {
    let mut frames = Frames::default();
    let failure = loop {
        match socket.read(frames.space()) {
            Ok(0) => break Failure::retry("read from", "the receiver closed the connection"),
            Ok(read) => {
                if let Err(failure) = frames.take(read, link) {
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
    link.fail(failure);
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
    fn take(&mut self, read: usize, link: &Link) -> Result<(), Failure> {
        self.filled += read;
        let filled = self.bytes.get(..self.filled).unwrap_or_default();
        let (frames, rest) = filled.as_chunks::<{ FrameHeader::BYTES }>();
        let left = rest.len();
        let mut confirmed = false;
        let mut result = Ok(());
        for frame in frames {
            match self.take_frame(frame, link) {
                Ok(moved) => confirmed |= moved,
                Err(failure) => {
                    result = Err(failure);
                    break;
                }
            }
        }
        if confirmed {
            link.tell_confirmed();
        }
        self.bytes.copy_within(self.filled - left..self.filled, 0);
        let taken = u64::try_from(self.filled - left).unwrap_or_default();
        self.offset = self.offset.wrapping_add(taken);
        self.filled = left;
        result
    }

    /// Takes one frame; whether it confirmed something.
    fn take_frame(&self, frame: &[u8; FrameHeader::BYTES], link: &Link) -> Result<bool, Failure> {
        let header = FrameHeader::read(frame).map_err(|kind| self.failure(kind))?;
        match header.kind {
            FrameKind::Acknowledgement => {
                let found = header.sequence;
                link.acknowledge(found).map_err(|(low, high)| {
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
