//! Standard input, and named pipes.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::fd::AsFd as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;

use crate::follow::follower::Fill;

/// The number of bytes that are read at a time.
const PART_BYTES: usize = 64 << 10;

/// Reads bytes that come once and have no position.
pub struct Stream {
    file: File,
    /// A pipe to open again when its writer goes.
    followed: Option<PathBuf>,
    buffer: Vec<u8>,
    start: usize,
    offset: u64,
    is_at_end: bool,
}

impl Stream {
    /// Reads standard input.
    ///
    /// # Errors
    ///
    /// The operating system refuses.
    pub fn standard_input() -> io::Result<Self> {
        let input = io::stdin().as_fd().try_clone_to_owned()?;
        Ok(Self::new(input.into(), None))
    }

    /// Opens a named pipe or a device. With `follow`, a pipe waits for its next writer when one
    /// goes. It waits for the first one in any case.
    ///
    /// # Errors
    ///
    /// The operating system refuses.
    pub fn open(path: &Path, follow: bool) -> io::Result<Self> {
        let file = open(path)?;
        Ok(Self::new(file, follow.then(|| path.to_owned())))
    }

    fn new(file: File, followed: Option<PathBuf>) -> Self {
        Self {
            file,
            followed,
            buffer: Vec::new(),
            start: 0,
            offset: 0,
            is_at_end: false,
        }
    }

    /// Returns the unread bytes, and the offset of the first one.
    pub fn part(&self) -> (u64, &[u8]) {
        let (_, unread) = self.buffer.split_at(self.start);
        (self.offset, unread)
    }

    /// Takes bytes from the front of the part.
    pub fn consume(&mut self, bytes: usize) {
        self.start += bytes;
        self.offset += bytes as u64;
    }

    /// Reads on, without waiting.
    ///
    /// # Errors
    ///
    /// The operating system refuses.
    pub fn fill(&mut self) -> io::Result<Fill> {
        self.buffer.drain(..self.start);
        self.start = 0;
        if !self.is_at_end {
            let state = self.wait(Duration::ZERO)?;
            if !state.intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR) {
                return Ok(Fill::Waiting);
            }
            let before = self.buffer.len();
            self.buffer.resize(before + PART_BYTES, 0);
            let (_, place) = self.buffer.split_at_mut(before);
            let read = self.file.read(place);
            self.buffer
                .truncate(before + read.as_ref().map_or(0, |read| *read));
            match read {
                Ok(0) => match &self.followed {
                    Some(path) => {
                        // The old one is open until then, so that the pipe keeps its bytes.
                        self.file = open(path)?;
                        return Ok(Fill::Waiting);
                    }
                    None => self.is_at_end = true,
                },
                Ok(_) => return Ok(Fill::Bytes),
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
                    ) =>
                {
                    return Ok(Fill::Waiting);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(match self.buffer.is_empty() {
            true => Fill::End,
            false => Fill::Rest,
        })
    }

    /// Waits until there is something to read, for this time at most.
    ///
    /// # Errors
    ///
    /// The operating system refuses.
    pub fn wait(&self, most: Duration) -> io::Result<PollFlags> {
        // A time that the system cannot express has no end.
        let timeout = Timespec::try_from(most).ok();
        let mut files = [PollFd::new(&self.file, PollFlags::IN)];
        match poll(&mut files, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(files.first().map_or(PollFlags::empty(), PollFd::revents))
    }
}

fn open(path: &Path) -> io::Result<File> {
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).map_err(io::Error::other)?;
    OpenOptions::new().read(true).custom_flags(flags).open(path)
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream")
            .field("offset", &self.offset)
            .finish_non_exhaustive()
    }
}
