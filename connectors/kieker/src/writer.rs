//! The sending ends: chunks to a socket or to a log of Kieker.

mod compression;
mod log;
mod log_config;
mod output;
mod tcp;
mod tcp_config;
mod text;

use baler_connector_file::thread_writer::ThreadWriter;

pub use compression::LogCompression;
pub use log_config::{KiekerLogWriterConfig, LogFormat};
pub use output::WriterCounts;
pub use tcp_config::KiekerTcpWriterConfig;

/// Sends records to Kieker's TCP source, over one socket.
///
/// It decodes chunks of any container. A chunk with a record that Kieker cannot read is refused as
/// a whole and for good.
pub type KiekerTcpWriter = ThreadWriter<KiekerTcpWriterConfig>;

/// Writes records into folders of text or binary logs, as [`KiekerTcpWriter`] sends them.
pub type KiekerLogWriter = ThreadWriter<KiekerLogWriterConfig>;
