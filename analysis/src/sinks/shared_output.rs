//! One output for several sinks.

use std::fmt;
use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use baler_common::mutex::lock;

use crate::pipe::Progress;

/// The most bytes in one call of the output, so that a slow output shows progress.
const WRITE_BYTES: usize = 64 << 10;

/// One output to which several sinks write lines. Clones share it.
///
/// Each clone has the output to itself from the beginning of a line to its end, even over several
/// calls of [`Write::write_all`]. After the first error every write fails.
pub struct SharedOutput {
    shared: Arc<OutputState>,
    number: u64,
    /// Whether it has written a part of a line.
    is_owner: bool,
}

struct OutputState {
    state: Mutex<State>,
    line_ended: Condvar,
    clones: AtomicU64,
    progress: Progress,
}

struct State {
    output: Box<dyn Write + Send>,
    /// The clone that has written a part of a line.
    owner: Option<u64>,
    failed: Option<io::ErrorKind>,
}

impl SharedOutput {
    /// Shares an output.
    pub fn new(output: impl Write + Send + 'static) -> Self {
        Self::watched(output, Progress::default())
    }

    /// Shares an output, and records in `progress` each time that it has taken data.
    pub fn watched(output: impl Write + Send + 'static, progress: Progress) -> Self {
        let state = State {
            output: Box::new(output),
            owner: None,
            failed: None,
        };
        Self {
            shared: Arc::new(OutputState {
                state: Mutex::new(state),
                line_ended: Condvar::new(),
                clones: AtomicU64::new(1),
                progress,
            }),
            number: 0,
            is_owner: false,
        }
    }

    /// Returns the output when no other clone is within a line.
    fn lock(&self) -> io::Result<MutexGuard<'_, State>> {
        let is_others = |state: &mut State| {
            state.failed.is_none() && state.owner.is_some_and(|owner| owner != self.number)
        };
        let state = lock(&self.shared.state);
        let waited = self.shared.line_ended.wait_while(state, is_others);
        let state = waited.unwrap_or_else(PoisonError::into_inner);
        match state.failed {
            Some(kind) => Err(kind.into()),
            None => Ok(state),
        }
    }
}

impl State {
    fn write(&mut self, bytes: &[u8], progress: &Progress) -> io::Result<()> {
        for part in bytes.chunks(WRITE_BYTES) {
            self.output.write_all(part)?;
            progress.moved();
        }
        Ok(())
    }
}

impl Clone for SharedOutput {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
            number: self.shared.clones.fetch_add(1, Ordering::Relaxed),
            is_owner: false,
        }
    }
}

impl Drop for SharedOutput {
    fn drop(&mut self) {
        // Another clone with the output may never release it.
        if self.is_owner {
            let mut state = lock(&self.shared.state);
            // No clone will complete the line.
            state.failed.get_or_insert(io::ErrorKind::Other);
            self.shared.line_ended.notify_all();
        }
    }
}

impl fmt::Debug for SharedOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedOutput").finish_non_exhaustive()
    }
}

impl Write for SharedOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut state = self.lock()?;
        let written = state.write(bytes, &self.shared.progress);
        let is_owner = bytes.last() != Some(&b'\n');
        state.owner = is_owner.then_some(self.number);
        state.failed = written.as_ref().err().map(io::Error::kind);
        if !is_owner || state.failed.is_some() {
            self.shared.line_ended.notify_all();
        }
        drop(state);
        self.is_owner = is_owner;
        written.map(|()| bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.lock()?.output.flush()
    }
}
