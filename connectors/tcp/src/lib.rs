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
mod versions;
mod writer;

use std::env::{self, VarError};

use baler_common::transport::uri::{Uri, UriError};
use baler_common::transport::{Medium, OpenReader, ReaderFactory, Readership};
pub use config::TcpConfig;
pub use error::{ProtocolError, ProtocolErrorKind};
pub use reader::{ReaderStats, TcpReader};
pub use versions::VersionRange;
pub use writer::TcpWriter;

/// The scheme of this medium's URIs.
pub const SCHEME: &str = "tcp";

/// The scheme of this medium's URIs with TLS, which needs the feature `tls`.
pub const SCHEME_TLS: &str = "tcp+tls";

/// The environment variable with the token, used if the URI names no `token_file`.
pub const TOKEN_VARIABLE: &str = "BALER_TOKEN";

/// This medium, for programs that open media by URI. The token of the environment
/// ([`TOKEN_VARIABLE`]) is used if the URI names none.
pub const MEDIUM: Medium = Medium {
    schemes: if cfg!(feature = "tls") {
        &[SCHEME, SCHEME_TLS]
    } else {
        &[SCHEME]
    },
    writer: |uri| Ok(Box::new(TcpWriter::new(with_token(uri)?))),
    receiver: |uri, _follow| {
        let config = with_token(uri)?;
        Ok(ReaderFactory::new(Readership::OneProcess, move || {
            let reader = TcpReader::bind(config.clone())?;
            let address = reader.local_addr();
            let is_open = config.is_open_to_all() && !address.ip().is_loopback();
            let warning = format!(
                "any host that reaches {address} can send records, and read those on their way; listen \
                 on 127.0.0.1, demand a token (token_file=FILE or {TOKEN_VARIABLE}), or use \
                 {SCHEME_TLS}:"
            );
            Ok(OpenReader {
                listens_on: Some(address),
                warning: is_open.then(|| warning.into()),
                ..reader.into()
            })
        }))
    },
    browser: None,
};

fn with_token(uri: Uri) -> Result<TcpConfig, UriError> {
    let config = TcpConfig::from_uri(uri)?;
    match env::var(TOKEN_VARIABLE) {
        Ok(token) => Ok(config.or_token(token)),
        Err(VarError::NotPresent) => Ok(config),
        Err(VarError::NotUnicode(_)) => Err(UriError::refused(format!(
            "{TOKEN_VARIABLE} is no UTF-8 text"
        ))),
    }
}
