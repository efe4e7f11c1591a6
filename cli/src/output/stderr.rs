//! Standard error, which nobody waits for after the deadline.

use std::io::{self, Write};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::shutdown::Shutdown;

/// How often whoever waits looks whether the deadline has come.
const TICK: Duration = Duration::from_millis(50);

/// Of a pipe that can be written so much is written without waiting: `PIPE_BUF` of Linux.
const PIPE_BYTES: usize = 4_096;

static SHUTDOWN: OnceLock<Shutdown> = OnceLock::new();

/// Whoever writes: nobody else takes the room that it was told of.
static TURN: Mutex<()> = Mutex::new(());

/// Ends all waiting for standard error at the deadline of this shutdown.
pub(crate) fn wait_at_most_for(shutdown: &Shutdown) {
    // There is one shutdown.
    SHUTDOWN.set(shutdown.clone()).ok();
}

/// Standard error. Writing waits for whoever reads it, but not beyond the deadline.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stderr;

impl Write for Stderr {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let stderr = io::stderr();
        let tick = Timespec::try_from(TICK).map_err(io::Error::other)?;
        loop {
            let mut fds = [PollFd::new(&stderr, PollFlags::OUT)];
            // What it is ready for may be an error.
            if poll(&mut fds, Some(&tick)).or_else(interrupted)? > 0 {
                let slice = bytes.get(..PIPE_BYTES).unwrap_or(bytes);
                return (&stderr).write_all(slice).map(|()| slice.len());
            }
            if SHUTDOWN.get().is_some_and(Shutdown::is_over) {
                return Err(io::ErrorKind::TimedOut.into());
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn interrupted(error: rustix::io::Errno) -> io::Result<usize> {
    match error {
        rustix::io::Errno::INTR => Ok(0),
        other => Err(other.into()),
    }
}
