//! Settings and files that cannot be used, and forms of keys.

use std::collections::BTreeMap;

use rcgen::{CertificateParams, KeyPair};
use rustls::version::TLS13;

use super::super::RetryClass;
use super::*;

fn take(text: &str) -> Result<Option<TlsFiles>, String> {
    let mut uri = Uri::parse(text).unwrap();
    TlsFiles::take(&mut uri, "x+tls").map_err(|error| error.to_string())
}

fn files(authorities: &str, certificate: &str, key: &str) -> TlsFiles {
    take(&format!(
        "x+tls://host?cacertfile={authorities}&certfile={certificate}&keyfile={key}"
    ))
    .unwrap()
    .unwrap()
}

/// A certificate, its key and the key of another one, and files that are none, by their names.
fn folder() -> BTreeMap<&'static Path, String> {
    let (key, other) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
    let params = CertificateParams::new(vec!["host".to_owned()]).unwrap();
    let certificate = params.self_signed(&key).unwrap().pem();
    let unreadable = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    let some = format!("{unreadable}{certificate}");
    let files = [
        ("certificate", certificate),
        ("key", key.serialize_pem()),
        ("other", other.serialize_pem()),
        ("unreadable", unreadable.to_owned()),
        ("some", some),
        ("empty", String::new()),
    ];
    files.map(|(name, text)| (Path::new(name), text)).into()
}

#[test]
fn settings_need_tls_and_each_other() {
    assert_eq!(take("x://host"), Ok(None));
    assert!(take("x+tls://host").unwrap().is_some());
    for (text, named) in [
        ("x://host?cacertfile=a", "x+tls"),
        ("x://host?certfile=a&keyfile=b", "x+tls"),
        ("x+tls://host?certfile=a", "certfile and keyfile"),
        ("x+tls://host?keyfile=a", "certfile and keyfile"),
    ] {
        let error = take(text).unwrap_err();
        assert!(error.contains(named), "{text}: {error}");
    }
}

#[test]
fn files_that_cannot_be_used_are_named_with_their_setting() {
    let folder = folder();
    let read = |path: &Path| {
        let text = folder.get(path).ok_or(io::ErrorKind::NotFound)?;
        Ok(text.clone().into_bytes())
    };
    let roots = |name| files(name, "certificate", "key").authorities(read);
    let own = |certificate, key| files("empty", certificate, key).own_certificate(read);
    let named = [
        (roots("absent").err(), "cacertfile", "absent: I/O"),
        (roots("empty").err(), "cacertfile", "empty: no items"),
        (roots("unreadable").err(), "cacertfile", "unreadable: no"),
        (own("absent", "key").err(), "certfile", "absent: I/O"),
        (own("certificate", "absent").err(), "keyfile", "absent: I/O"),
        (
            own("certificate", "certificate").err(),
            "keyfile",
            "certificate: no items",
        ),
        (own("certificate", "other").err(), "certfile", "other: "),
        (own("certificate", "other").err(), "keyfile", "KeyMismatch"),
    ];
    for (failure, setting, reason) in named {
        let failure = failure.unwrap();
        assert_eq!(failure.class, RetryClass::Final);
        let message = &failure.message;
        assert!(message.contains(setting), "{message}, not {setting}");
        assert!(message.contains(reason), "{message}, not {reason}");
    }
    assert!(own("certificate", "key").unwrap().is_some());
    let some = roots("some").unwrap().unwrap();
    assert_eq!(some.len(), 1);
    let files = files("some", "certificate", "key");
    let named = files
        .client(read, &[&TLS13], some, "no host")
        .err()
        .unwrap();
    assert!(named.message.contains("no host"), "{}", named.message);
}
