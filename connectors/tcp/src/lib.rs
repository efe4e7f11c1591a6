#![doc = include_str!("../README.md")]

mod client;
mod config;
mod error;
mod framing;
#[doc(hidden)]
pub mod fuzzing;
mod headers;
mod reader;
mod security;
#[cfg(feature = "tls")]
mod tls;
mod writer;

pub use config::TcpConfig;
pub use error::{ProtocolError, ProtocolErrorKind};
pub use headers::VersionRange;
pub use reader::{TcpReader, TcpReaderCounts};
pub use writer::TcpWriter;

/// The scheme of this medium's URIs.
pub const SCHEME: &str = "tcp";

/// The scheme of this medium's URIs with TLS, which needs the feature `tls`.
pub const SCHEME_TLS: &str = "tcp+tls";
