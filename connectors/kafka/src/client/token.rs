//! Tokens for OAUTHBEARER, from a file.

use std::error::Error;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rdkafka::client::OAuthToken;
use serde_json::Value;

use super::{TOKEN_FILE, read_secret};

/// How long a token that does not say it itself counts.
const LIFETIME: Duration = Duration::from_secs(300);

/// Where tokens come from.
#[derive(Clone, Default)]
pub(crate) struct TokenSource {
    /// The file, read whenever the client wants a new token: at four fifths of the life of the one
    /// before.
    pub(crate) file: Option<Box<str>>,
}

impl TokenSource {
    /// A token.
    pub(crate) fn next(&self) -> Result<OAuthToken, Box<dyn Error>> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH)?;
        let path = self.file.as_deref().ok_or("there is no file of a token")?;
        let token =
            read_secret(TOKEN_FILE, path).map_err(|failure| failure.message.into_string())?;
        from_text(token.trim(), now)
    }
}

/// A token as it was issued; if it is a JSON Web Token (RFC 7519) its own claims count.
fn from_text(token: &str, now: Duration) -> Result<OAuthToken, Box<dyn Error>> {
    if token.is_empty() || token.contains(char::is_whitespace) {
        return Err(format!("{TOKEN_FILE} holds no token").into());
    }
    let claims = token.split('.').nth(1).and_then(|part| {
        let bytes = URL_SAFE_NO_PAD.decode(part).ok()?;
        serde_json::from_slice::<Value>(&bytes).ok()
    });
    let claim = |name: &str| claims.as_ref()?.get(name);
    let ends = claim("exp").and_then(Value::as_u64);
    let ends = ends.map_or(now + LIFETIME, Duration::from_secs);
    if ends <= now {
        return Err(format!("the token in {TOKEN_FILE} has expired").into());
    }
    let principal = claim("sub").and_then(Value::as_str).unwrap_or("baler");
    Ok(OAuthToken {
        token: token.to_owned(),
        principal_name: principal.to_owned(),
        lifetime_ms: i64::try_from(ends.as_millis())?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

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
            std::fs::write(&path, format!("{token}\n")).unwrap();
            assert_eq!(source.next().unwrap().token, token);
        }
        std::fs::remove_file(&path).unwrap();
    }
}
