//! A receiver after a proxy, and the secrets that senders prove to have.

use std::fs;
use std::num::{NonZeroU32, NonZeroUsize};

use baler_common::transport::uri::Uri;
use baler_common::transport::{ChunkReader, ChunkWriter};
use baler_connector_tcp::{TcpConfig, TcpReader, TcpWriter};
use baler_connector_testkit::TestMedium;
use baler_connector_testkit::certificates;
use baler_connector_testkit::faults::TcpProxy;
use baler_connector_testkit::hostile::Guard;
use tempfile::TempDir;

/// Small limits, so that the cases that reach them are quick.
pub(crate) fn config(port: u16) -> TcpConfig {
    let small = |value| NonZeroU32::new(value).unwrap();
    with(TcpConfig::new("127.0.0.1", port), |config| {
        config.max_chunk_bytes = small(20_000);
        config.window.chunks = small(32);
        config.window.bytes = small(60_000);
        config.memory_bytes = NonZeroUsize::new(100_000).unwrap();
    })
}

/// The settings with a change.
pub(crate) fn with(mut config: TcpConfig, change: impl FnOnce(&mut TcpConfig)) -> TcpConfig {
    change(&mut config);
    config
}

/// A receiver at a port of its own.
pub(crate) fn receiver(config: TcpConfig) -> TcpReader {
    TcpReader::bind(config).unwrap()
}

/// A token, and with TLS certificates and keys, in files that end with the test.
pub(crate) struct Secrets {
    folder: TempDir,
}

impl Secrets {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("token"), "a token of some length").unwrap();
        #[cfg(feature = "tls")]
        certificates::issue(folder.path());
        Self { folder }
    }

    /// The name of a file.
    pub(crate) fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    /// Returns the settings of both ends for this demand.
    pub(crate) fn config(&self, guard: Guard, port: u16) -> TcpConfig {
        let plain = format!("tcp://127.0.0.1:{port}");
        uri(&match guard {
            Guard::None => plain,
            Guard::Tls => self.tls(port, "authority", Some("one")),
            Guard::Token => format!("{plain}?token_file={}", self.path("token")),
        })
    }

    /// Returns a URI with TLS: the authority that this side trusts, and its own certificate.
    pub(crate) fn tls(&self, port: u16, authority: &str, certificate: Option<&str>) -> String {
        let settings = certificates::settings(self.folder.path(), Some(authority), certificate);
        format!("tcp+tls://127.0.0.1:{port}?{settings}")
    }
}

/// The settings in a URI.
pub(crate) fn uri(text: &str) -> TcpConfig {
    TcpConfig::from_uri(Uri::parse(text).unwrap()).unwrap()
}

/// A receiver after a proxy. Writers connect to the proxy, because a restarted receiver has another
/// port.
pub(crate) struct Tcp {
    pub(crate) proxy: TcpProxy,
}

impl Tcp {
    /// Starts a receiver with other settings after the proxy.
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

impl TestMedium for Tcp {
    fn fresh() -> Self {
        Self {
            proxy: TcpProxy::start().unwrap(),
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
