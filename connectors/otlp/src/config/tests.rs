//! Settings by URI.

use super::{Others, OtlpReaderConfig, OtlpWriterConfig, Target};
use crate::compression::Compression;
use baler_common::transport::uri::Uri;

fn writer(uri: &str) -> Result<OtlpWriterConfig, String> {
    OtlpWriterConfig::from_uri(Uri::parse(uri).unwrap()).map_err(|error| error.to_string())
}

fn reader(uri: &str) -> Result<OtlpReaderConfig, String> {
    OtlpReaderConfig::from_uri(Uri::parse(uri).unwrap()).map_err(|error| error.to_string())
}

#[test]
fn settings_are_read() {
    let config = writer(
        "otlp+http://h:4318/base/?compression=zstd&timeout=3s&max_request=1MiB&max_requests=2&\
         others=skip&window=1MiB",
    );
    let config = config.unwrap();
    assert!(matches!(&config.target, Target::Http(_, path) if &**path == "/base"));
    assert_eq!(config.compression, Compression::Zstd);
    assert_eq!(config.timeout.as_secs(), 3);
    assert_eq!(config.max_request_bytes.get(), 1 << 20);
    assert_eq!(
        (config.max_requests.get(), config.others),
        (2, Others::Skip)
    );
    assert_eq!(config.to_string(), "otlp+http://h:4318/base");
    for scheme in ["otlp", "otlp+grpc"] {
        let config = writer(&format!("{scheme}://h:4317?compression=none")).unwrap();
        assert_eq!(config.to_string(), "otlp+grpc://h:4317");
    }
    for uri in [
        "otlp+tls://h:4317",
        "otlp+https://h:4318/base",
        "otlp+unix:/run/otlp.sock",
    ] {
        let config = writer(&format!("{uri}?compression=none")).unwrap();
        assert_eq!(config.to_string(), uri);
        assert_eq!(config.tls.is_some(), !uri.contains("unix"));
    }
    for uri in ["otlp+tls://h:4317", "otlp+unix:otlp.sock"] {
        assert_eq!(reader(uri).unwrap().to_string(), uri);
    }
    let config = writer("otlp+file:spans.jsonl?others=skip").unwrap();
    assert_eq!(config.to_string(), "otlp+file:spans.jsonl");
    let config = reader("otlp+http://[::1]:0?memory=1MiB&max_requests=3&max_connections=4");
    let config = config.unwrap();
    assert_eq!(config.memory_bytes.get(), 1 << 20);
    assert_eq!(
        (config.max_requests.get(), config.max_connections.get()),
        (3, 4)
    );
}

#[test]
fn wrong_settings_are_refused() {
    let wrong = [
        "otlp://h",
        "otlp://h:1/path",
        "otlp+http://h",
        "otlp+file:",
        "otlp+file:x?compression=gzip",
        "otlp+file:x?headers=a=b",
        "otlp+unix:",
        "otlp+unix://h:1/path",
        "otlp+unix:x?cacertfile=a",
        "otlp://h:1?cacertfile=a",
        "otlp://h:1?headers=hush",
        "otlp://h:1?compression=gzap",
        "otlp://h:1?others=drop",
    ];
    for uri in wrong {
        assert!(writer(uri).is_err(), "{uri}");
    }
    let error = writer("otlp://h:1?headers=hush").unwrap_err();
    assert!(!error.contains("hush"), "{error}");
    assert!(
        reader("otlp+file:x")
            .unwrap_err()
            .contains("only be written")
    );
    assert!(
        reader("otlp://h:1?max_request=3")
            .unwrap_err()
            .contains("max_requests")
    );
}
