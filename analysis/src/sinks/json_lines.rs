//! One JSON object a record, one record a line.

use std::io::{self, Write};

use baler_common::record::RecordRef;
use baler_common::transport::ChunkIdentity;

use crate::error::AnalysisError;
use crate::filters::Counts;
use crate::parcel::Parcel;
use crate::sinks::json::{IdentifiedJson, RecordJson, RecordOrLine, line_of};
use crate::sinks::slices::Slices;
use crate::stage::Stage;

/// The form of a line.
#[derive(Debug, Clone, Copy)]
enum Form {
    /// The fields alone.
    Bare,
    /// [`IdentifiedJson`]
    Identified,
    /// [`RecordJson`]
    Record,
}

/// Writes one JSON object a record, one record a line, in the form of [`RecordJson`].
///
/// The output gets slices of at most 1 MiB, whatever the size of a decoded chunk. A chunk is
/// released when its lines were passed to the output.
#[derive(Debug)]
pub struct JsonLines<W> {
    output: Slices<W>,
    form: Form,
}

impl<W: Write + Send> JsonLines<W> {
    /// Writes to `output`; messages call it `what`.
    pub fn new(output: W, what: impl Into<Box<str>>) -> Self {
        Self {
            output: Slices::new(output, what.into()),
            form: Form::Record,
        }
    }

    /// Also writes the identity of each record, in the form of [`IdentifiedJson`].
    #[must_use]
    pub fn with_identity(mut self) -> Self {
        self.form = Form::Identified;
        self
    }

    /// Writes only the fields of each record, as the line that it was: a JSON object, or the text of
    /// a record whose only field is text. JSON text comes as it was.
    #[must_use]
    pub fn as_lines(mut self) -> Self {
        self.form = Form::Bare;
        self
    }

    /// Counts the records that the output has taken in `written`.
    #[must_use]
    pub fn counting(mut self, written: Counts) -> Self {
        self.output.written = written;
        self
    }

    fn write(
        &mut self,
        record: RecordRef<'_>,
        chunk: Option<ChunkIdentity>,
        index: u32,
    ) -> io::Result<()> {
        match self.form {
            Form::Bare => match line_of(record.fields()) {
                Some(text) => self.output.write_all(text.as_bytes())?,
                None => serde_json::to_writer(&mut self.output, &RecordOrLine(record.fields()))?,
            },
            Form::Identified => {
                let record = IdentifiedJson {
                    record,
                    chunk,
                    index,
                };
                serde_json::to_writer(&mut self.output, &record)?;
            }
            Form::Record => serde_json::to_writer(&mut self.output, &RecordJson(record))?,
        }
        self.output.end_line()
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
            written.map_err(|error| self.output.error(error))?;
        }
        self.output.hold(parcel)
    }

    fn flush(&mut self) -> Result<(), AnalysisError> {
        self.output.release()
    }
}
