//! The thread that writes what was offered.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, IoSlice, Write};
use std::time::Duration;

use super::link::{Link, Work};
use crate::client::Socket;
use crate::error::failed;
use crate::frame::FrameKind;
use crate::outgoing::Outgoing;

/// How many pieces one call to the operating system takes (`IOV_MAX` of Linux).
const MAX_SLICES: usize = 1024;

/// Writes what is offered until the connection ends.
pub(super) fn run(link: &Link, mut socket: Socket, heartbeat: Duration) {
    let mut outgoing = Outgoing::default();
    let mut chunks = VecDeque::new();
    loop {
        let work = link.wait_for_work(heartbeat, &mut chunks);
        match work {
            Work::Write => chunks.iter().for_each(|chunk| outgoing.push(chunk)),
            Work::Heartbeat => outgoing.push_short(FrameKind::Heartbeat),
            Work::Bye => outgoing.push_short(FrameKind::Bye),
            Work::Stop => return,
        }
        chunks.clear();
        if let Err(error) = write_all(&mut socket, &mut outgoing.slices()) {
            return link.fail(failed("write to", &error));
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
