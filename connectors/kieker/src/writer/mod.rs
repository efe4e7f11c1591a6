//! The sending ends: chunks to a socket or to a log of Kieker.

mod compression;
mod log;
mod log_config;
mod output;
mod tcp;
mod tcp_config;
mod text;

use baler_blocking::ThreadWriter;
use baler_common::container::ChunkDecoder;
use baler_common::record::{Catalog, RecordBatch, Schema};
use baler_common::transport::Chunk;

pub use compression::LogCompression;
pub use log_config::{KiekerLogWriterConfig, LogFormat};
use output::WriteError;
pub use output::WriterCounts;
pub use tcp_config::KiekerTcpWriterConfig;

/// Sends records to Kieker's TCP source, over one socket.
///
/// It decodes chunks of any container. A chunk with a record that Kieker cannot read is refused as
/// a whole and for good.
pub type KiekerTcpWriter = ThreadWriter<KiekerTcpWriterConfig>;

/// Writes records into folders of text or binary logs, as [`KiekerTcpWriter`] sends them.
pub type KiekerLogWriter = ThreadWriter<KiekerLogWriterConfig>;

/// Decodes a chunk, and refuses record types that the chunk's reader would not know.
///
/// Kieker's readers cannot find the end of a record of an unknown class. So they give up the
/// connection or the file at the first such record.
fn fitting(
    decoder: &mut ChunkDecoder,
    catalog: &Catalog,
    chunk: &Chunk,
) -> Result<RecordBatch, WriteError> {
    let decoded = decoder.decode(&chunk.bytes);
    let decoded = decoded.map_err(|error| {
        let message = format!("the chunk cannot be decoded: {error}");
        WriteError::Refused(message.into())
    })?;
    let batch = decoded.batch;
    let tables = batch.tables().iter().filter(|table| !table.is_empty());
    let unknown = tables.map(|it| it.schema()).find_map(|schema| {
        let name = schema.name();
        match catalog.get(name) {
            Some(known) if is_same(known, schema) => None,
            Some(_) => Some(format!(
                "{name} has other fields than Kieker's record of that name"
            )),
            None => Some(format!(
                "Kieker has no record type {name}; name its definition with schema=FILE.irl if \
                 the reader has the class, or filter such records out"
            )),
        }
    });
    match unknown {
        None => Ok(batch),
        Some(message) => Err(WriteError::Refused(message.into())),
    }
}

/// Whether two types are the same in Kieker's formats, which have no roles.
fn is_same(known: &Schema, schema: &Schema) -> bool {
    let fields = |schema: &Schema| {
        let fields = schema.fields().iter();
        let fields = fields.map(|it| (Box::<str>::from(it.name()), it.field_type().clone()));
        fields.collect::<Vec<_>>()
    };
    known.name() == schema.name()
        && (known.fingerprint() == schema.fingerprint() || fields(known) == fields(schema))
}
