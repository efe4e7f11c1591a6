//! A line as a record of a batch.

use std::sync::Arc;

use baler_common::container::{ChunkHeader, ChunkSerializer as _, EncodeError, NativeSerializer};
use baler_common::record::{
    BatchBuilder, Field, FieldType, NO_TIMESTAMP, PushError, RowWriter, Schema,
};
use baler_common::transport::ChunkIdentity;

use crate::lines::config::Format;
use crate::lines::error::LineError;
use crate::lines::headers::first_identity;
use crate::lines::inference::Inference;
use crate::lines::origin::{Origin, origin_fields, write_origin};

/// The name of the record type of text, unless a URI names another one.
pub const TEXT_NAME: &str = "text";

/// The field of text.
pub const TEXT_FIELD: &str = "line";

/// Makes records of lines.
#[derive(Debug)]
pub(crate) enum Records {
    Json(Inference),
    Text { schema: Arc<Schema>, row: Vec<u8> },
}

impl Records {
    #[expect(
        clippy::expect_used,
        reason = "the settings have checked the name of the type"
    )]
    pub(crate) fn new(format: &Format, has_origin: bool) -> Self {
        match format {
            Format::Json { type_field } => {
                Self::Json(Inference::new(&**type_field).with_origin(has_origin))
            }
            Format::Text { type_name } => {
                let mut fields = vec![Field::new(TEXT_FIELD, FieldType::String)];
                fields.extend(has_origin.then(origin_fields).into_iter().flatten());
                let schema = Schema::new(&**type_name, fields).expect("a name, and some fields");
                Self::Text {
                    schema: Arc::new(schema),
                    row: Vec::new(),
                }
            }
        }
    }

    /// Adds a line to the batch.
    pub(crate) fn add(
        &mut self,
        line: &[u8],
        origin: Option<&Origin<'_>>,
        batch: &mut BatchBuilder,
    ) -> Result<(), LineError> {
        let line = std::str::from_utf8(line)?;
        match self {
            Self::Json(inference) => inference.add(line, origin, batch),
            Self::Text { schema, row } => {
                row.clear();
                let mut writer = RowWriter::new(row);
                writer.str(line);
                if let Some(origin) = origin {
                    write_origin(origin, &mut writer);
                }
                if writer.is_too_large() {
                    return Err(PushError::Full.into());
                }
                Ok(batch.push_row(schema, NO_TIMESTAMP, row)?)
            }
        }
    }
}

/// Returns a line without what programs leave around it: a byte order mark at the beginning of a
/// file, a carriage return, NULs that a crash or a truncation left. Also returns the number of the
/// NULs.
pub(crate) fn trimmed(mut line: &[u8], is_first: bool) -> (&[u8], u64) {
    let nuls = line.iter().take_while(|byte| **byte == 0).count();
    (_, line) = line.split_at(nuls);
    if is_first || nuls > 0 {
        line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
    }
    line = line.strip_suffix(b"\r").unwrap_or(line);
    (line, nuls as u64)
}

/// Makes a chunk of a line that an earlier reader put aside, if it is one.
///
/// # Errors
///
/// It is no line that a reader would take.
pub fn chunk_of_line(line: &[u8], scheme: &str) -> Result<(ChunkIdentity, Vec<u8>), LineError> {
    let format = match scheme {
        crate::lines::TEXT_SCHEME => Format::Text {
            type_name: TEXT_NAME.into(),
        },
        _ => Format::Json {
            type_field: "type".into(),
        },
    };
    let mut batch = BatchBuilder::new();
    let (line, _) = trimmed(line, true);
    Records::new(&format, false).add(line, None, &mut batch)?;
    let identity = first_identity(scheme);
    let bytes = serialized(&mut NativeSerializer::default(), &batch, identity);
    Ok((identity, bytes.map_err(|_| PushError::Malformed)?))
}

pub(crate) fn serialized(
    serializer: &mut NativeSerializer,
    batch: &BatchBuilder,
    identity: ChunkIdentity,
) -> Result<Vec<u8>, EncodeError> {
    let mut bytes = Vec::new();
    serializer.serialize(batch.batch(), &ChunkHeader::new(identity), &mut bytes)?;
    Ok(bytes)
}
