//! URIs to the ends of connectors, and to logs: the only place that names every medium.

mod medium;
mod plain;
mod reader;
mod readers;
mod source;
mod tap;
mod writer;

use std::env::VarError;
use std::fmt;

use baler_common::transport::uri::Uri;
use baler_connector_tcp::TcpConfig;
pub(crate) use medium::Readership;
pub(crate) use plain::{embedded_cluster, plain_writer};
pub(crate) use reader::{OpenReader, open_reader};
pub(crate) use readers::{OpenReaders, open_readers};
pub(crate) use source::{JsonLines, RecordSource, check_source, open_source};
pub(crate) use tap::{TapRange, open_tap};
pub(crate) use writer::{Writer, with_topic, wrap, writer};

use crate::exit::Failure;

/// The schemes of media, and the feature of this program that each needs, if it needs one.
const MEDIA: &[(&str, Option<Feature>)] = &[
    ("amqp", Some(AMQP)),
    ("amqps", Some(AMQP)),
    ("file", None),
    ("kafka", Some(KAFKA)),
    ("kafka+mock", Some(KAFKA)),
    ("null", None),
    ("tcp", None),
    ("tcp+tls", Some(TLS)),
];

/// A feature that a build has or has not.
#[derive(Debug, Clone, Copy)]
struct Feature {
    name: &'static str,
    is_built_in: bool,
}

const AMQP: Feature = Feature {
    name: "amqp",
    is_built_in: cfg!(feature = "amqp"),
};

const KAFKA: Feature = Feature {
    name: "kafka",
    is_built_in: cfg!(feature = "kafka"),
};

const TLS: Feature = Feature {
    name: "tls",
    is_built_in: cfg!(feature = "tls"),
};

/// The variable of the token that senders over TCP prove to have, where no file is named.
const TOKEN: &str = "BALER_TOKEN";

/// The scheme of text logs, which records can come from as well.
const KIEKER_LOG: &str = "kieker-log";

/// The scheme of JSON lines, which records can come from as well.
const JSON_LINES: &str = "jsonl";

/// A URI without its secrets.
pub(crate) fn shown(text: &str) -> String {
    parse(text).map_or_else(|failure| failure.message, |(_, endpoint)| endpoint)
}

/// Whether a text is meant as a URI rather than as a path: it begins with a known scheme, or looks
/// like `scheme://`.
pub(crate) fn is_uri(text: &str) -> bool {
    text.split_once(':').is_some_and(|(scheme, rest)| {
        let is_medium = MEDIA.iter().any(|(known, _)| *known == scheme);
        is_medium || [JSON_LINES, KIEKER_LOG].contains(&scheme) || rest.starts_with("//")
    })
}

/// Takes a URI apart, and shows it without its secrets.
fn parse(text: &str) -> Result<(Uri, String), Failure> {
    let uri = Uri::parse(text).map_err(|error| Failure::configuration(error.to_string()))?;
    let endpoint = uri.to_string();
    Ok((uri, endpoint))
}

/// The settings of a URI for TCP, with the token of the environment if it names none.
fn tcp(uri: Uri, endpoint: &str) -> Result<TcpConfig, Failure> {
    if uri.scheme() == "tcp+tls" && !TLS.is_built_in {
        return Err(unknown_scheme(uri.scheme(), false));
    }
    let config = TcpConfig::from_uri(uri).map_err(|error| bad_uri(endpoint, &error))?;
    match std::env::var(TOKEN) {
        Ok(token) => Ok(config.or_token(token)),
        Err(VarError::NotPresent) => Ok(config),
        Err(VarError::NotUnicode(_)) => {
            Err(Failure::configuration(format!("{TOKEN} is no UTF-8 text")))
        }
    }
}

fn bad_uri(endpoint: &str, error: &impl fmt::Display) -> Failure {
    Failure::configuration(format!("{endpoint}: {error}"))
}

/// The scheme is none of those that can stand here.
fn unknown_scheme(scheme: &str, logs: bool) -> Failure {
    no_such_scheme(MEDIA, scheme, logs)
}

/// Names the scheme, and the feature that this build lacks; or else the schemes that there are, and
/// the nearest of them.
fn no_such_scheme(media: &[(&str, Option<Feature>)], scheme: &str, logs: bool) -> Failure {
    let (built_in, absent): (Vec<_>, Vec<_>) = media
        .iter()
        .partition(|(_, needs)| needs.is_none_or(|feature| feature.is_built_in));
    let lacking = absent.iter().find(|(known, _)| *known == scheme);
    if let Some((_, Some(feature))) = lacking {
        let name = feature.name;
        return Failure::configuration(format!(
            "byte 0 of the URI: {scheme}: needs the feature {name}, which this build lacks; build \
             the program with it: cargo build --release --package baler-cli --features {name}"
        ));
    }
    let mut schemes: Vec<_> = built_in.iter().map(|(known, _)| *known).collect();
    schemes.extend([JSON_LINES, KIEKER_LOG].into_iter().filter(|_| logs));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scheme_that_is_not_built_in_names_the_feature_and_how_to_get_it() {
        let absent = Feature {
            name: "kafka",
            is_built_in: false,
        };
        let media = [
            ("kafka", Some(absent)),
            ("kafka+mock", Some(absent)),
            ("null", None),
        ];
        let told = |scheme| no_such_scheme(&media, scheme, true).message;
        for scheme in ["kafka", "kafka+mock"] {
            let told = told(scheme);
            assert!(told.contains("this build lacks"), "{told}");
            assert!(told.contains("--features kafka"), "{told}");
        }
        let unknown = told("kafkaa");
        assert!(
            unknown.contains("no known scheme, use one of jsonl:, kieker-log:, null:"),
            "{unknown}"
        );
        assert!(!unknown.contains("kafka:"), "{unknown}");
    }
}
