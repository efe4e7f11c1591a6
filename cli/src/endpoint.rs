//! Opens the endpoints that URIs name. The list of media comes from `baler`.

mod plain;
mod reader;
mod writer;

use std::borrow::Cow;
use std::fmt;

use baler::media;
use baler_common::transport::uri::Uri;
pub(crate) use plain::{embedded_cluster, plain_writer};
pub(crate) use reader::{OpenReader, open_reader, open_tap, receiver, watched};
#[cfg(feature = "kieker")]
pub(crate) use reader::{Receiver, adaptive_receiver};
pub(crate) use writer::{Writer, spooled_writer, writer};

use crate::args::SchemasArgs;
use crate::exit::Failure;

/// Adds the record types of `--schemas` to the URI of a medium that takes them. A setting in the URI
/// comes first. A text that is no URI stays as it is.
pub(crate) fn with_schemas<'a>(text: &'a str, schemas: &SchemasArgs) -> Cow<'a, str> {
    #[cfg(feature = "kieker")]
    if let (Some(path), Ok(mut uri)) = (&schemas.path, Uri::parse(text)) {
        let is_kiekers = match uri.scheme() {
            "kieker+tcp" | "kieker-log" => true,
            "amqp" | "amqps" => uri.take_text("format").as_deref() == Some("kieker-plain"),
            _ => false,
        };
        if is_kiekers && uri.take_text("schema").is_none() {
            let mark = if text.contains('?') { '&' } else { '?' };
            let mut with = format!("{text}{mark}schema=");
            for byte in path.as_os_str().as_encoded_bytes() {
                match byte {
                    b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' => {
                        with.push(char::from(*byte));
                    }
                    _ => with.push_str(&format!("%{byte:02X}")),
                }
            }
            return Cow::Owned(with);
        }
    }
    #[cfg(not(feature = "kieker"))]
    let SchemasArgs {} = schemas;
    Cow::Borrowed(text)
}

/// Returns a URI without its secrets.
pub(crate) fn shown(text: &str) -> String {
    parse(text).map_or_else(|failure| failure.message, |(_, endpoint)| endpoint)
}

/// Whether a text is meant as a URI rather than as a path: it begins with a known scheme, or looks
/// like `scheme://`.
pub(crate) fn is_uri(text: &str) -> bool {
    media().is_named_by(text)
        || text
            .split_once(':')
            .is_some_and(|it| it.1.starts_with("//"))
}

/// Parses a URI. Also returns it without its secrets.
fn parse(text: &str) -> Result<(Uri, String), Failure> {
    let uri = Uri::parse(text).map_err(|error| Failure::configuration(error.to_string()))?;
    let endpoint = uri.to_string();
    Ok((uri, endpoint))
}

/// Turns an error into a failure that names the endpoint.
fn wrong<E: fmt::Display>(endpoint: &str) -> impl Fn(E) -> Failure {
    move |error| Failure::configuration(format!("{endpoint}: {error}"))
}
