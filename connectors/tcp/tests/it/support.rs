//! A receiver behind a proxy.

use std::num::{NonZeroU32, NonZeroUsize};

use baler_common::transport::{ChunkReader, ChunkWriter};
use baler_connector_tcp::{TcpConfig, TcpReader, TcpWriter};
use baler_connector_testkit::{Medium, Support, TcpProxy};

/// Small limits, so that the cases that reach them are quick.
pub(crate) fn config(port: u16) -> TcpConfig {
    let small = |value| NonZeroU32::new(value).unwrap();
    TcpConfig::new("127.0.0.1", port)
        .max_chunk_bytes(small(20_000))
        .window_chunks(small(32))
        .window_bytes(small(60_000))
        .memory_bytes(NonZeroUsize::new(100_000).unwrap())
}

/// A receiver at a port of its own.
pub(crate) fn receiver(config: TcpConfig) -> TcpReader {
    TcpReader::bind(config).unwrap()
}

/// A receiver behind a proxy: writers come through it, a restarted receiver has another port.
pub(crate) struct Tcp {
    pub(crate) proxy: TcpProxy,
}

impl Tcp {
    /// A receiver with other settings, now behind the proxy.
    pub(crate) fn reader_with(&self, config: TcpConfig) -> TcpReader {
        let reader = receiver(config);
        self.proxy.set_target(Some(reader.local_addr()));
        reader
    }

    /// A writer with other settings.
    pub(crate) fn writer_with(&self, set: impl FnOnce(TcpConfig) -> TcpConfig) -> TcpWriter {
        TcpWriter::new(set(config(self.proxy.address().port())))
    }
}

impl Medium for Tcp {
    fn fresh() -> Self {
        Self {
            proxy: TcpProxy::start().unwrap(),
        }
    }

    fn support(&self) -> Support {
        Support {
            readers: 1,
            ..Support::ALL
        }
    }

    fn writer(&mut self) -> Box<dyn ChunkWriter> {
        Box::new(self.writer_with(|config| config))
    }

    fn reader(&mut self) -> Box<dyn ChunkReader> {
        Box::new(self.reader_with(config(0)))
    }

    fn break_connections(&mut self) {
        self.proxy.cut();
    }

    fn stall(&mut self) {
        self.proxy.set_frozen(true);
    }

    fn resume(&mut self) {
        self.proxy.set_frozen(false);
    }
}
