//! Writes lines to an output in slices of limited size.

use std::io::{self, Write};

/// The largest slice that an output gets at once, whatever the size of a record.
pub(super) const SLICE_BYTES: usize = 1 << 20;

/// At this size the buffer goes to the output, and its chunks are settled.
const FLUSH_BYTES: usize = 256 << 10;

/// Collects lines and passes them to an output in slices of at most [`SLICE_BYTES`].
///
/// A slice ends with a whole line, unless the line is longer than a slice.
#[derive(Debug)]
pub(super) struct Slices<W> {
    output: W,
    buffer: Vec<u8>,
    /// Whether a slice was written since the last [`Write::flush`].
    is_dirty: bool,
}

impl<W: Write> Slices<W> {
    pub(super) fn new(output: W) -> Self {
        Self {
            output,
            buffer: Vec::new(),
            is_dirty: false,
        }
    }

    /// Ends a line.
    pub(super) fn end_line(&mut self) -> io::Result<()> {
        self.write_all(b"\n")?;
        if self.buffer.len() >= FLUSH_BYTES {
            self.pour()?;
        }
        Ok(())
    }

    /// Whether enough was written to settle the chunks.
    pub(super) fn is_due(&self) -> bool {
        self.is_dirty
    }

    fn pour(&mut self) -> io::Result<()> {
        self.is_dirty = true;
        self.output.write_all(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }
}

impl<W: Write> Write for Slices<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.buffer.len() >= SLICE_BYTES {
            self.pour()?;
        }
        let taken = bytes.len().min(SLICE_BYTES - self.buffer.len());
        self.buffer.extend_from_slice(&bytes[..taken]);
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        if !self.buffer.is_empty() {
            self.pour()?;
        }
        self.output.flush()?;
        self.is_dirty = false;
        Ok(())
    }
}
