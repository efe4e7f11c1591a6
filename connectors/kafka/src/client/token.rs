//! Tokens for OAUTHBEARER: from a file, or librdkafka's unsecured ones.

use std::error::Error;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rdkafka::client::OAuthToken;
use serde_json::{Value, json};

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
    /// A token. `config` is librdkafka's `sasl.oauthbearer.config`.
    pub(crate) fn next(&self, config: Option<&str>) -> Result<OAuthToken, Box<dyn Error>> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH)?;
        match &self.file {
            Some(path) => {
                let token = read_secret(TOKEN_FILE, path)
                    .map_err(|failure| failure.message.into_string())?;
                from_text(token.trim(), now)
            }
            None => unsecured(config.unwrap_or_default(), now),
        }
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

/// A token that nobody signed (RFC 7515, appendix A.5), for clusters that try things out.
/// `config` has librdkafka's words: `principal=NAME`, `scope=A,B`, `lifeSeconds=N`.
fn unsecured(config: &str, now: Duration) -> Result<OAuthToken, Box<dyn Error>> {
    let (mut principal, mut scope, mut life) = (None, Vec::new(), Duration::from_secs(3600));
    for word in config.split_whitespace() {
        match word.split_once('=') {
            Some(("principal", name)) => principal = Some(name),
            Some(("scope", names)) => scope.extend(names.split(',')),
            Some(("lifeSeconds", seconds)) => life = Duration::from_secs(seconds.parse()?),
            _ => {
                let text = "sasl.oauthbearer.config holds what is not principal=, scope= or \
                            lifeSeconds=";
                return Err(text.into());
            }
        }
    }
    let principal = principal.ok_or("sasl.oauthbearer.config has no principal=")?;
    let ends = now + life;
    let mut claims = json!({
        "sub": principal,
        "iat": now.as_secs(),
        "exp": ends.as_secs(),
    });
    if let (false, Some(claims)) = (scope.is_empty(), claims.as_object_mut()) {
        claims.insert("scope".to_owned(), json!(scope));
    }
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    Ok(OAuthToken {
        token: format!("{}.{}.", part(&json!({"alg": "none"})), part(&claims)),
        principal_name: principal.to_owned(),
        lifetime_ms: i64::try_from(ends.as_millis())?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::from_secs(1_000_000);

    #[test]
    fn unsecured_token_holds_its_claims_and_is_taken_as_one() {
        let token = unsecured("principal=me scope=a,b lifeSeconds=60", NOW).unwrap();
        assert_eq!(token.principal_name, "me");
        assert_eq!(token.lifetime_ms, 1_000_060_000);
        assert!(token.token.starts_with("eyJhbGciOiJub25lIn0."));
        let again = from_text(&token.token, NOW).unwrap();
        assert_eq!(again.principal_name, "me");
        assert_eq!(again.lifetime_ms, token.lifetime_ms);
        let late = from_text(&token.token, NOW + Duration::from_secs(60));
        assert!(late.err().unwrap().to_string().contains("expired"));
    }

    #[test]
    fn opaque_token_counts_for_a_while() {
        let token = from_text("opaque", NOW).unwrap();
        assert_eq!((&*token.principal_name, &*token.token), ("baler", "opaque"));
        assert_eq!(token.lifetime_ms, 1_000_300_000);
        assert!(from_text("two words", NOW).is_err());
        assert!(from_text("", NOW).is_err());
    }

    #[test]
    fn wrong_configuration_is_named_and_not_shown() {
        let error = |config| unsecured(config, NOW).err().unwrap().to_string();
        assert!(error("").contains("principal"));
        let text = error("principal=me extension_secret=hush");
        assert!(text.contains("sasl.oauthbearer.config") && !text.contains("hush"));
    }

    #[test]
    fn file_is_read_at_each_refresh() {
        let name = format!("baler-kafka-token-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let source = TokenSource {
            file: Some(path.to_str().unwrap().into()),
        };
        assert!(source.next(None).is_err());
        for token in ["first", "second"] {
            std::fs::write(&path, format!("{token}\n")).unwrap();
            assert_eq!(source.next(None).unwrap().token, token);
        }
        std::fs::remove_file(&path).unwrap();
    }
}
