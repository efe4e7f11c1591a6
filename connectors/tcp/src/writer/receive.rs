//! The thread that reads acknowledgements.

use std::io::{ErrorKind, Read};
use std::net::TcpStream;
use std::time::Duration;

use super::link::Link;
use crate::error::{Failure, ProtocolError, ProtocolErrorKind, failed};
use crate::frame::{FrameHeader, FrameKind, Hello};

/// Reads the receiver's frames until the connection ends.
pub(super) fn run(link: &Link, mut stream: TcpStream, silence: Duration) {
    let mut frames = Frames::default();
    let failure = loop {
        match stream.read(frames.space()) {
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

    /// Takes what was read; a run of acknowledgements is as good as its last.
    fn take(&mut self, read: usize, link: &Link) -> Result<(), Failure> {
        self.filled += read;
        let filled = self.bytes.get(..self.filled).unwrap_or_default();
        let (frames, rest) = filled.as_chunks::<{ FrameHeader::BYTES }>();
        let (mut settled, mut problem) = (None, None);
        let mut taken = 0;
        for frame in frames {
            match FrameHeader::read(frame) {
                Ok(header) => match header.kind {
                    FrameKind::Acknowledgement => settled = Some(header.sequence),
                    FrameKind::Heartbeat => {}
                    FrameKind::Bye => {
                        problem = Some(Failure::retry("read from", "the receiver is closing"));
                        break;
                    }
                    FrameKind::Chunk => {
                        problem = Some(self.failure(ProtocolErrorKind::Invalid { found: 1 }));
                        break;
                    }
                },
                Err(kind) => {
                    problem = Some(self.failure(kind));
                    break;
                }
            }
            taken += FrameHeader::BYTES;
        }
        let left = rest.len();
        if let Some(settled) = settled {
            link.acknowledge(settled).map_err(|(low, high)| {
                let found = settled;
                self.failure(ProtocolErrorKind::Acknowledgement { found, low, high })
            })?;
        }
        if let Some(problem) = problem {
            return Err(problem);
        }
        self.bytes.copy_within(self.filled - left..self.filled, 0);
        self.filled = left;
        self.offset = self
            .offset
            .wrapping_add(u64::try_from(taken).unwrap_or_default());
        Ok(())
    }

    fn failure(&self, kind: ProtocolErrorKind) -> Failure {
        Failure::from(&ProtocolError {
            offset: self.offset,
            reading: "the receiver's frames",
            kind,
        })
    }
}
