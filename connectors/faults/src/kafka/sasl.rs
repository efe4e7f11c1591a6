//! Clients authenticate to a proxy, before brokers that ask for nothing (KIP-43, KIP-152).

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Read, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::protocol::{API_VERSIONS, SASL_AUTHENTICATE, SASL_HANDSHAKE};
use super::splice::{Splice, read_frame, write_frame};

/// `UNSUPPORTED_SASL_MECHANISM`.
const UNSUPPORTED_MECHANISM: i16 = 33;
/// `SASL_AUTHENTICATION_FAILED`.
const AUTHENTICATION_FAILED: i16 = 58;
/// The length of a string that is null.
const NULL: i16 = -1;

/// The one mechanism that the proxy knows: `PLAIN` (RFC 4616).
const MECHANISM: &str = "PLAIN";

/// Who may connect to a proxy, and with which password, by SASL PLAIN. Its clones are the same.
///
/// Changes hold for connections that are made from then on, as with a broker. Open connections stay.
#[derive(Clone, Default)]
pub struct KafkaSasl {
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    passwords: BTreeMap<Box<str>, Box<str>>,
    admitted: usize,
    refused: usize,
}

impl fmt::Debug for KafkaSasl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KafkaSasl").finish_non_exhaustive()
    }
}

/// How far a client is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Exchange {
    /// It named no mechanism yet.
    None,
    /// It named the mechanism that the proxy knows.
    Agreed,
    /// It authenticated.
    Done,
}

impl KafkaSasl {
    /// Admits a user with this password alone from now on.
    pub fn set_password(&self, user: &str, password: &str) {
        self.lock().passwords.insert(user.into(), password.into());
    }

    /// How many connections authenticated so far.
    pub fn admitted(&self) -> usize {
        self.lock().admitted
    }

    /// How many connections were refused so far.
    pub fn refused(&self) -> usize {
        self.lock().refused
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has a client authenticate itself. `ask` has a broker answer what may be asked before that.
    ///
    /// # Errors
    ///
    /// The connection ended, or is to be ended.
    pub(super) fn admit(
        &self,
        from: &mut impl Read,
        to: &mut impl Write,
        mut ask: impl FnMut(&[u8]) -> io::Result<Vec<u8>>,
    ) -> io::Result<()> {
        let mut exchange = Exchange::None;
        loop {
            let request = read_frame(from)?;
            let key = Splice::new(&request).i16();
            if key == Some(API_VERSIONS) {
                write_frame(to, &ask(&request)?)?;
                continue;
            }
            // A broker that is asked for something else hangs up, too.
            let request = SaslRequest::read(&request).ok_or(io::ErrorKind::PermissionDenied)?;
            let (answer, next) = match key {
                Some(SASL_HANDSHAKE) => agree(&request),
                _ => self.authenticate(&request, exchange),
            };
            write_frame(to, &answer)?;
            exchange = next;
            match exchange {
                Exchange::None => {
                    self.lock().refused += 1;
                    return Err(io::ErrorKind::PermissionDenied.into());
                }
                Exchange::Agreed => {}
                Exchange::Done => {
                    self.lock().admitted += 1;
                    return Ok(());
                }
            }
        }
    }

    /// The answer to a name and a password.
    fn authenticate(&self, request: &SaslRequest<'_>, exchange: Exchange) -> (Vec<u8>, Exchange) {
        let mut answer = Answer::to(request.number);
        let is_known = exchange == Exchange::Agreed && self.knows(request.content);
        if is_known {
            answer.i16(0);
            answer.i16(NULL);
        } else {
            answer.i16(AUTHENTICATION_FAILED);
            answer.text("Authentication failed: Invalid username or password");
        }
        // No token.
        answer.i32(0);
        if request.version >= 1 {
            // A session without an end.
            answer.0.extend_from_slice(&0_i64.to_be_bytes());
        }
        let next = if is_known {
            Exchange::Done
        } else {
            Exchange::None
        };
        (answer.0, next)
    }

    /// Whether the token has a user and its password: whom to act as, who, and the password, each after
    /// a zero but the first.
    fn knows(&self, token: &[u8]) -> bool {
        let token = std::str::from_utf8(token).unwrap_or_default();
        let mut parts = token.splitn(3, '\0').skip(1);
        let (user, password) = (parts.next(), parts.next());
        let state = self.lock();
        let known = user.and_then(|user| state.passwords.get(user));
        known.is_some_and(|known| Some(&**known) == password)
    }
}

/// The answer to the name of a mechanism.
fn agree(request: &SaslRequest<'_>) -> (Vec<u8>, Exchange) {
    let is_known = request.content == MECHANISM.as_bytes();
    let mut answer = Answer::to(request.number);
    answer.i16(if is_known { 0 } else { UNSUPPORTED_MECHANISM });
    answer.i32(1);
    answer.text(MECHANISM);
    let next = if is_known {
        Exchange::Agreed
    } else {
        Exchange::None
    };
    (answer.0, next)
}

/// What a request of SASL holds: a number, and the name of a mechanism or a token.
struct SaslRequest<'a> {
    version: i16,
    number: i32,
    content: &'a [u8],
}

impl<'a> SaslRequest<'a> {
    fn read(request: &'a [u8]) -> Option<Self> {
        let mut splice = Splice::new(request);
        let key = splice.i16()?;
        let version = splice.i16()?;
        let number = splice.i32()?;
        // Who the client says to be.
        splice.take_string(false)?;
        let content = match key {
            SASL_HANDSHAKE => splice.take_string(false)??,
            SASL_AUTHENTICATE => {
                let bytes = splice.i32()?;
                splice.take(usize::try_from(bytes).ok()?)?
            }
            _ => return None,
        };
        Some(Self {
            version,
            number,
            content,
        })
    }
}

/// An answer of SASL.
struct Answer(Vec<u8>);

impl Answer {
    fn to(number: i32) -> Self {
        Self(number.to_be_bytes().to_vec())
    }

    fn i16(&mut self, value: i16) {
        self.0.extend_from_slice(&value.to_be_bytes());
    }

    fn i32(&mut self, value: i32) {
        self.0.extend_from_slice(&value.to_be_bytes());
    }

    fn text(&mut self, text: &str) {
        self.i16(i16::try_from(text.len()).unwrap_or(i16::MAX));
        self.0.extend_from_slice(text.as_bytes());
    }
}
