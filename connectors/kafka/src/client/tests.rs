//! Secrets and tokens from files.

use std::fs;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::{TokenSource, from_text, read_secret};

#[test]
fn line_end_is_no_part_of_a_secret_and_a_missing_file_is_named() {
    let name = format!("baler-kafka-secret-{}", std::process::id());
    let path = std::env::temp_dir().join(name);
    let text = path.to_str().unwrap();
    fs::write(&path, " hush \r\n").unwrap();
    assert_eq!(read_secret("sasl.password.file", text).unwrap(), " hush ");
    fs::remove_file(&path).unwrap();
    let failure = read_secret("sasl.password.file", text).unwrap_err();
    assert!(failure.message.contains("sasl.password.file"));
    assert!(failure.message.contains(text));
}

const NOW: Duration = Duration::from_secs(1_000_000);

#[test]
fn token_counts_as_long_as_it_says_or_for_a_while() {
    let claims = URL_SAFE_NO_PAD.encode(r#"{"sub":"me","exp":1000060}"#);
    let signed = format!("head.{claims}.signature");
    let token = from_text(&signed, NOW).unwrap();
    assert_eq!(token.principal_name, "me");
    assert_eq!(token.lifetime_ms, 1_000_060_000);
    let late = from_text(&signed, NOW + Duration::from_secs(60));
    assert!(late.err().unwrap().to_string().contains("expired"));
    let token = from_text("opaque", NOW).unwrap();
    assert_eq!((&*token.principal_name, &*token.token), ("baler", "opaque"));
    assert_eq!(token.lifetime_ms, 1_000_300_000);
    assert!(from_text("two words", NOW).is_err());
    assert!(from_text("", NOW).is_err());
}

#[test]
fn file_is_read_at_each_refresh() {
    let name = format!("baler-kafka-token-{}", std::process::id());
    let path = std::env::temp_dir().join(name);
    let source = TokenSource {
        file: Some(path.to_str().unwrap().into()),
    };
    assert!(source.next().is_err());
    for token in ["first", "second"] {
        fs::write(&path, format!("{token}\n")).unwrap();
        assert_eq!(source.next().unwrap().token, token);
    }
    fs::remove_file(&path).unwrap();
}
