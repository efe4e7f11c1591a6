//! Clients authenticate to a proxy, before brokers that ask for nothing (KIP-43, KIP-152).

mod scram;

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Read, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::frame;
use super::protocol::{API_VERSIONS, SASL_AUTHENTICATE, SASL_HANDSHAKE};
use super::splice::Splice;
use scram::Scram;

/// `UNSUPPORTED_SASL_MECHANISM`.
const UNSUPPORTED_MECHANISM: i16 = 33;
/// `SASL_AUTHENTICATION_FAILED`.
const AUTHENTICATION_FAILED: i16 = 58;

/// How a client proves who it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SaslMechanism {
    /// `PLAIN` (RFC 4616): it tells the password.
    Plain,
    /// `SCRAM-SHA-256` (RFC 7677): it proves that it knows the password, and so does the server.
    ScramSha256,
    /// `SCRAM-SHA-512`: as above with another hash function.
    ScramSha512,
}

impl SaslMechanism {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Plain, Self::ScramSha256, Self::ScramSha512];

    /// Its name in the protocol, and in `sasl.mechanism`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Plain => "PLAIN",
            Self::ScramSha256 => "SCRAM-SHA-256",
            Self::ScramSha512 => "SCRAM-SHA-512",
        }
    }
}

/// Who may connect to a proxy, and how they prove it. Its clones are the same.
///
/// What is changed counts for connections that are made from then on, as with a broker; those that
/// are there stay.
#[derive(Clone)]
pub struct KafkaSasl {
    mechanisms: Arc<[SaslMechanism]>,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    passwords: BTreeMap<Box<str>, Box<str>>,
    admitted: BTreeMap<SaslMechanism, usize>,
    refused: usize,
}

impl fmt::Debug for KafkaSasl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KafkaSasl")
            .field("mechanisms", &self.mechanisms)
            .finish_non_exhaustive()
    }
}

/// Why a client is not admitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refusal {
    /// Nobody has this name and this password.
    Credentials,
    /// That is no message of the mechanism.
    Malformed,
}

/// How far a client is.
enum Exchange {
    /// It named no mechanism yet.
    None,
    /// It named this one.
    Agreed(SaslMechanism),
    /// It is to prove that it knows the password.
    Challenged(Scram, SaslMechanism),
    /// It is who it says.
    Done(SaslMechanism),
}

impl KafkaSasl {
    /// Takes these mechanisms, and knows nobody yet.
    pub fn new(mechanisms: &[SaslMechanism]) -> Self {
        Self {
            mechanisms: mechanisms.into(),
            state: Arc::default(),
        }
    }

    /// Knows a user, by this password alone from now on.
    pub fn set_password(&self, user: &str, password: &str) {
        self.lock().passwords.insert(user.into(), password.into());
    }

    /// How many connections authenticated by a mechanism so far.
    pub fn admitted(&self, mechanism: SaslMechanism) -> usize {
        let state = self.lock();
        state.admitted.get(&mechanism).copied().unwrap_or_default()
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
            let request = frame::read(from)?;
            let (answer, goes_on) = match key(&request) {
                Some(API_VERSIONS) => (ask(&request)?, true),
                Some(SASL_HANDSHAKE) => {
                    let told = Told::read(&request).ok_or(io::ErrorKind::InvalidData)?;
                    self.agree(&told, &mut exchange)
                }
                Some(SASL_AUTHENTICATE) => {
                    let told = Told::read(&request).ok_or(io::ErrorKind::InvalidData)?;
                    self.prove(&told, &mut exchange)
                }
                // A broker that is asked for something else hangs up, too.
                _ => return Err(io::ErrorKind::PermissionDenied.into()),
            };
            frame::write(to, &answer)?;
            if !goes_on {
                self.lock().refused += 1;
                return Err(io::ErrorKind::PermissionDenied.into());
            }
            if let Exchange::Done(mechanism) = exchange {
                *self.lock().admitted.entry(mechanism).or_default() += 1;
                return Ok(());
            }
        }
    }

    /// The answer to a mechanism, and whether it is taken.
    fn agree(&self, told: &Told<'_>, exchange: &mut Exchange) -> (Vec<u8>, bool) {
        let mut known = self.mechanisms.iter();
        let found = known.find(|known| known.name().as_bytes() == told.content);
        let mut answer = Answer::to(told.number);
        answer.i16(if found.is_some() {
            0
        } else {
            UNSUPPORTED_MECHANISM
        });
        answer.i32(self.mechanisms.len());
        for mechanism in &*self.mechanisms {
            answer.text(mechanism.name());
        }
        if let Some(mechanism) = found {
            *exchange = Exchange::Agreed(*mechanism);
        }
        (answer.0, found.is_some())
    }

    /// The answer to a token, and whether it is taken.
    fn prove(&self, told: &Told<'_>, exchange: &mut Exchange) -> (Vec<u8>, bool) {
        let mut answer = Answer::to(told.number);
        let before = std::mem::replace(exchange, Exchange::None);
        let goes_on = match self.step(before, told.content) {
            Ok((next, token)) => {
                *exchange = next;
                answer.i16(0);
                answer.null();
                answer.bytes(&token);
                true
            }
            Err((refusal, mechanism)) => {
                answer.i16(AUTHENTICATION_FAILED);
                answer.text(&refusal.told(mechanism));
                answer.bytes(&[]);
                false
            }
        };
        if told.version >= 1 {
            // A session without an end.
            answer.0.extend_from_slice(&0_i64.to_be_bytes());
        }
        (answer.0, goes_on)
    }

    fn step(
        &self,
        exchange: Exchange,
        token: &[u8],
    ) -> Result<(Exchange, Vec<u8>), (Refusal, Option<SaslMechanism>)> {
        match exchange {
            Exchange::None | Exchange::Done(_) => Err((Refusal::Malformed, None)),
            Exchange::Agreed(mechanism @ SaslMechanism::Plain) => self
                .plain(token)
                .map(|()| (Exchange::Done(mechanism), Vec::new()))
                .map_err(|refusal| (refusal, Some(mechanism))),
            Exchange::Agreed(mechanism) => {
                let hash = match mechanism {
                    SaslMechanism::ScramSha512 => scram::sha_512(),
                    SaslMechanism::ScramSha256 | SaslMechanism::Plain => scram::sha_256(),
                };
                scram::user_of(token)
                    .and_then(|user| self.password(&user))
                    .and_then(|password| Scram::begin(hash, token, &password))
                    .map(|(begun, answer)| (Exchange::Challenged(begun, mechanism), answer))
                    .map_err(|refusal| (refusal, Some(mechanism)))
            }
            Exchange::Challenged(begun, mechanism) => begun
                .end(token)
                .map(|answer| (Exchange::Done(mechanism), answer))
                .map_err(|refusal| (refusal, Some(mechanism))),
        }
    }

    /// Whom to act as, who, and the password, each after a zero but the first.
    fn plain(&self, token: &[u8]) -> Result<(), Refusal> {
        let token = std::str::from_utf8(token).map_err(|_| Refusal::Malformed)?;
        let mut parts = token.splitn(3, '\0').skip(1);
        let (Some(user), Some(password)) = (parts.next(), parts.next()) else {
            return Err(Refusal::Malformed);
        };
        if *self.password(user)? == *password {
            Ok(())
        } else {
            Err(Refusal::Credentials)
        }
    }

    fn password(&self, user: &str) -> Result<Box<str>, Refusal> {
        let state = self.lock();
        state
            .passwords
            .get(user)
            .cloned()
            .ok_or(Refusal::Credentials)
    }
}

impl Refusal {
    /// What Kafka says in its place.
    fn told(self, mechanism: Option<SaslMechanism>) -> String {
        match (self, mechanism) {
            (Self::Credentials, Some(SaslMechanism::Plain)) => {
                "Authentication failed: Invalid username or password".to_owned()
            }
            (Self::Credentials | Self::Malformed, Some(mechanism)) => format!(
                "Authentication failed during authentication due to invalid credentials with SASL \
                 mechanism {}",
                mechanism.name()
            ),
            (_, None) => "Authentication failed: no mechanism was named".to_owned(),
        }
    }
}

/// What a request of SASL holds: a number, and the name of a mechanism or a token.
struct Told<'a> {
    version: i16,
    number: i32,
    content: &'a [u8],
}

fn key(request: &[u8]) -> Option<i16> {
    Splice::new(request).i16()
}

impl<'a> Told<'a> {
    fn read(request: &'a [u8]) -> Option<Self> {
        let mut splice = Splice::new(request);
        let key = splice.i16()?;
        let version = splice.i16()?;
        let number = splice.i32()?;
        // Who the client says to be.
        splice.take_string(false)?;
        let content = if key == SASL_HANDSHAKE {
            splice.take_string(false)??
        } else {
            let bytes = splice.i32()?;
            splice.take(usize::try_from(bytes).ok()?)?
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

    fn i32(&mut self, value: usize) {
        let value = i32::try_from(value).unwrap_or(i32::MAX);
        self.0.extend_from_slice(&value.to_be_bytes());
    }

    fn text(&mut self, text: &str) {
        self.i16(i16::try_from(text.len()).unwrap_or(i16::MAX));
        self.0.extend_from_slice(text.as_bytes());
    }

    fn null(&mut self) {
        self.i16(-1);
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.i32(bytes.len());
        self.0.extend_from_slice(bytes);
    }
}
