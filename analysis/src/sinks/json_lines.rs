//! One JSON object a record, one record a line.

use std::io::Write;

use crate::error::AnalysisError;
use crate::parcel::{Held, Parcel};
use crate::sinks::json::{IdentifiedJson, RecordJson};
use crate::stage::Stage;

/// After so many bytes the buffer goes to the output, and the chunks are settled.
const FLUSH_BYTES: usize = 256 << 10;

/// Writes one JSON object a record, one record a line, as [`RecordJson`] describes it.
///
/// Chunks are let go when their lines have been handed to the output.
#[derive(Debug)]
pub struct JsonLines<W> {
    output: W,
    what: Box<str>,
    buffer: Vec<u8>,
    held: Held,
    identified: bool,
}

impl<W: Write + Send> JsonLines<W> {
    /// Writes to `output`, called `what` in messages.
    pub fn new(output: W, what: impl Into<Box<str>>) -> Self {
        Self {
            output,
            what: what.into(),
            buffer: Vec::new(),
            held: Held::default(),
            identified: false,
        }
    }

    /// Writes beside each record who it is, as [`IdentifiedJson`] describes it.
    #[must_use]
    pub fn with_identity(mut self) -> Self {
        self.identified = true;
        self
    }

    fn error(&self, error: std::io::Error) -> AnalysisError {
        AnalysisError::output(self.what.clone(), error)
    }
}

impl<W: Write + Send> Stage for JsonLines<W> {
    fn name(&self) -> &'static str {
        "json lines"
    }

    fn accept(&mut self, parcel: Parcel) -> Result<(), AnalysisError> {
        let chunk = parcel.identity();
        for (index, record) in parcel.records() {
            let written = if self.identified {
                let record = IdentifiedJson {
                    record,
                    chunk,
                    index,
                };
                serde_json::to_writer(&mut self.buffer, &record)
            } else {
                serde_json::to_writer(&mut self.buffer, &RecordJson(record))
            };
            written.map_err(|error| AnalysisError::output(self.what.clone(), error.into()))?;
            self.buffer.push(b'\n');
        }
        self.held.push(parcel);
        if self.buffer.len() >= FLUSH_BYTES {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), AnalysisError> {
        let written = self
            .output
            .write_all(&self.buffer)
            .and_then(|()| self.output.flush());
        written.map_err(|error| self.error(error))?;
        self.buffer.clear();
        self.held.release_all();
        Ok(())
    }
}
