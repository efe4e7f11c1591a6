//! One JSON object a record, one record a line.

use std::io::{self, Write};

use baler_common::record::RecordRef;
use baler_common::transport::ChunkIdentity;

use crate::error::AnalysisError;
use crate::filters::Counts;
use crate::parcel::{Held, Parcel};
use crate::sinks::json::{IdentifiedJson, RecordJson};
use crate::sinks::slices::Slices;
use crate::stage::Stage;

/// Writes one JSON object a record, one record a line, in the form of [`RecordJson`].
///
/// The output gets slices of at most 1 MiB, whatever the size of a decoded chunk. A chunk is
/// released when its lines were passed to the output.
#[derive(Debug)]
pub struct JsonLines<W> {
    output: Slices<W>,
    what: Box<str>,
    held: Held,
    written: Counts,
    identified: bool,
}

impl<W: Write + Send> JsonLines<W> {
    /// Writes to `output`; messages call it `what`.
    pub fn new(output: W, what: impl Into<Box<str>>) -> Self {
        Self {
            output: Slices::new(output),
            what: what.into(),
            held: Held::default(),
            written: Counts::default(),
            identified: false,
        }
    }

    /// Also writes the identity of each record, in the form of [`IdentifiedJson`].
    #[must_use]
    pub fn with_identity(mut self) -> Self {
        self.identified = true;
        self
    }

    /// Counts the records that the output has taken in `written`.
    #[must_use]
    pub fn counting(mut self, written: Counts) -> Self {
        self.written = written;
        self
    }

    fn write(
        &mut self,
        record: RecordRef<'_>,
        chunk: Option<ChunkIdentity>,
        index: u32,
    ) -> io::Result<()> {
        if self.identified {
            let record = IdentifiedJson {
                record,
                chunk,
                index,
            };
            serde_json::to_writer(&mut self.output, &record)?;
        } else {
            serde_json::to_writer(&mut self.output, &RecordJson(record))?;
        }
        self.output.end_line()
    }

    fn error(&self, error: io::Error) -> AnalysisError {
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
            let written = self.write(record, chunk, index);
            written.map_err(|error| self.error(error))?;
        }
        self.held.push(parcel);
        if self.output.is_due() {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), AnalysisError> {
        self.output.flush().map_err(|error| self.error(error))?;
        self.held.release_into(&self.written);
        Ok(())
    }
}
