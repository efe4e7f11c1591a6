//! URIs to the ends of connectors, and to logs: the only place that names every medium.

mod medium;
mod plain;
mod reader;
mod readers;
mod source;
mod tap;
mod writer;

use std::fmt;

use baler_common::transport::uri::Uri;
pub(crate) use plain::{embedded_cluster, plain_writer};
pub(crate) use reader::{OpenReader, open_reader};
pub(crate) use readers::{OpenReaders, open_readers};
pub(crate) use source::{RecordSource, check_source, open_source};
pub(crate) use tap::{TapRange, open_tap};
pub(crate) use writer::{Writer, with_topic, wrap, writer};

use crate::exit::Failure;

/// The schemes of media.
const MEDIA: &[&str] = &[
    #[cfg(feature = "amqp")]
    "amqp",
    #[cfg(feature = "amqp")]
    "amqps",
    "file",
    #[cfg(feature = "kafka")]
    "kafka",
    #[cfg(feature = "kafka")]
    "kafka+mock",
    "null",
    "tcp",
];

/// The scheme of text logs, which records can come from as well.
const KIEKER_LOG: &str = "kieker-log";

/// A URI without its secrets.
pub(crate) fn shown(text: &str) -> String {
    parse(text).map_or_else(|failure| failure.message, |(_, endpoint)| endpoint)
}

/// Whether a text is meant as a URI rather than as a path: it begins with a known scheme, or looks
/// like `scheme://`.
pub(crate) fn is_uri(text: &str) -> bool {
    text.split_once(':').is_some_and(|(scheme, rest)| {
        MEDIA.contains(&scheme) || scheme == KIEKER_LOG || rest.starts_with("//")
    })
}

/// Takes a URI apart, and shows it without its secrets.
fn parse(text: &str) -> Result<(Uri, String), Failure> {
    let uri = Uri::parse(text).map_err(|error| Failure::configuration(error.to_string()))?;
    let endpoint = uri.to_string();
    Ok((uri, endpoint))
}

fn bad_uri(endpoint: &str, error: &impl fmt::Display) -> Failure {
    Failure::configuration(format!("{endpoint}: {error}"))
}

/// Names the scheme, those that there are, and the nearest of them.
fn unknown_scheme(scheme: &str, logs: bool) -> Failure {
    let mut schemes = MEDIA.to_vec();
    schemes.extend(logs.then_some(KIEKER_LOG));
    schemes.sort_unstable();
    let nearest = schemes
        .iter()
        .map(|known| (strsim::normalized_damerau_levenshtein(scheme, known), known))
        .filter(|(similarity, _)| *similarity >= 0.4)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map_or_else(String::new, |(_, nearest)| {
            format!("; did you mean {nearest}:?")
        });
    let known: Vec<_> = schemes.iter().map(|known| format!("{known}:")).collect();
    Failure::configuration(format!(
        "byte 0 of the URI: {scheme}: is no known scheme, use one of {}{nearest}",
        known.join(", "),
    ))
}
