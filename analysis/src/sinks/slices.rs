//! Writes lines to an output in slices of limited size.

use std::io::{self, Write};

use crate::error::AnalysisError;
use crate::filters::Counts;
use crate::parcel::{Held, Parcel};

/// The largest slice that an output gets at once, whatever the size of a record.
pub(super) const SLICE_BYTES: usize = 1 << 20;

/// At this size the buffer goes to the output, and its chunks are settled.
const FLUSH_BYTES: usize = 256 << 10;

/// Collects lines and passes them to an output in slices of at most [`SLICE_BYTES`]. Holds their
/// parcels until the output has taken them.
///
/// A slice ends with a whole line, unless the line is longer than a slice.
#[derive(Debug)]
pub(super) struct Slices<W> {
    output: W,
    /// The output, for messages.
    what: Box<str>,
    buffer: Vec<u8>,
    held: Held,
    /// Counts the records that the output has taken.
    pub(super) written: Counts,
    /// Whether a slice was written since the last [`Write::flush`].
    is_dirty: bool,
}

impl<W: Write> Slices<W> {
    pub(super) fn new(output: W, what: Box<str>) -> Self {
        Self {
            output,
            what,
            buffer: Vec::new(),
            held: Held::default(),
            written: Counts::default(),
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

    /// An error of the output.
    pub(super) fn error(&self, error: io::Error) -> AnalysisError {
        AnalysisError::output(self.what.clone(), error)
    }

    /// Holds a parcel whose lines were written. Releases all, if a slice was written.
    pub(super) fn hold(&mut self, parcel: Parcel) -> Result<(), AnalysisError> {
        self.held.push(parcel);
        match self.is_dirty {
            true => self.release(),
            false => Ok(()),
        }
    }

    /// Passes all lines to the output, and releases their parcels.
    pub(super) fn release(&mut self) -> Result<(), AnalysisError> {
        self.flush().map_err(|error| self.error(error))?;
        self.held.release_into(&self.written);
        Ok(())
    }

    fn pour(&mut self) -> io::Result<()> {
        self.is_dirty = true;
        self.output.write_all(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }
}

impl<W: Write> Write for Slices<W> {
    /// A line is written in pieces of a few bytes. Nearly all of them have room.
    #[inline]
    fn write_all(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while bytes.len() > SLICE_BYTES - self.buffer.len() {
            let (fitting, rest) = bytes.split_at(SLICE_BYTES - self.buffer.len());
            self.buffer.extend_from_slice(fitting);
            self.pour()?;
            bytes = rest;
        }
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }

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
