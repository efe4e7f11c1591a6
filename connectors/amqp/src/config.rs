//! The settings: broker, queue and exchange, limits and times.

mod queue;
#[cfg(test)]
mod tests;

use std::fmt;
use std::fs;
use std::num::{NonZeroU16, NonZeroU32};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use baler_common::non_zero;
use baler_common::random::random;
use baler_common::transport::tls::TlsFiles;
use baler_common::transport::uri::{Host, Uri, UriError};
use baler_common::transport::{Failure, WindowLimits};
use lapin::ExchangeKind;
use lapin::types::AMQPValue;

use super::{SCHEME, SCHEME_TLS};
pub(crate) use queue::{Names, QueueArguments};

/// The settings of both ends.
#[derive(Clone, PartialEq)]
pub struct AmqpConfig {
    /// One or more nodes of the same cluster.
    pub(crate) hosts: Box<[Host]>,
    pub(crate) user: Box<str>,
    pub(crate) password: Password,
    pub(crate) vhost: Box<str>,
    /// The path as the user typed it, for messages.
    path: Box<str>,
    pub(crate) names: Names,
    pub(crate) queue_type: QueueType,
    pub(crate) arguments: QueueArguments,
    pub(crate) declare: bool,
    pub(crate) max_chunk_bytes: NonZeroU32,
    pub(crate) window: WindowLimits,
    pub(crate) prefetch: NonZeroU16,
    pub(crate) ack_every: NonZeroU16,
    pub(crate) ack_interval: Duration,
    pub(crate) heartbeat: Duration,
    pub(crate) connect_timeout: Duration,
    pub(crate) confirm_timeout: Duration,
    pub(crate) reconnect_max: Duration,
    pub(crate) lag_interval: Duration,
    pub(crate) start: Start,
    pub(crate) position_file: Option<PathBuf>,
    /// Set if the scheme is that with TLS.
    pub(crate) tls: Option<TlsFiles>,
    /// Set if readers only look; see [`AmqpConfig::tap`] and [`AmqpConfig::inspect`].
    pub(crate) tap_target: Option<TapTarget>,
}

/// The type of a declared queue (RabbitMQ's `x-queue-type`). Queues are always durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueueType {
    /// On one node.
    Classic,
    /// Replicated by Raft. This is the default.
    Quorum,
    /// A log that each reader reads completely. Reading removes nothing.
    Stream,
}

impl QueueType {
    const CHOICES: [(&'static str, Self); 3] = [
        ("classic", Self::Classic),
        ("quorum", Self::Quorum),
        ("stream", Self::Stream),
    ];

    /// RabbitMQ's name of the type.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Classic => "classic",
            Self::Quorum => "quorum",
            Self::Stream => "stream",
        }
    }
}

impl AmqpConfig {
    /// The settings in `amqp[s]://user:password@host:port,host:port/vhost?setting=value&…`;
    /// README.md lists them. The path is the virtual host. Without a path, or with a single slash, it
    /// is `/`. Several hosts are nodes of one cluster.
    ///
    /// # Errors
    ///
    /// The URI has no host, neither a queue nor an exchange, or a setting that is unknown, wrong
    /// or in conflict with another.
    pub fn from_uri(mut uri: Uri) -> Result<Self, UriError> {
        if uri.hosts().is_empty() {
            // This returns the error.
            uri.host()?;
        }
        let hosts = uri.hosts().into();
        let password_file = uri.take_path("password_file");
        let password = match (uri.password().map(Box::from), password_file) {
            (Some(_), Some(_)) => {
                let first = "the password before the host";
                let why = "one of them would not count";
                return Err(UriError::conflict(first, "password_file", why));
            }
            (None, Some(file)) => Password::File(file),
            // The default of RabbitMQ's own clients. Brokers accept it only from their own machine.
            (text, None) => Password::Text(text.unwrap_or_else(|| "guest".into())),
        };
        // In the AMQP URI specification a single slash is the virtual host with an empty name. Nobody
        // has such a host, and everybody types the slash.
        let vhost = match uri.path().strip_prefix('/') {
            None | Some("") => "/".into(),
            Some(vhost) => vhost.into(),
        };
        let names = Names::take(&mut uri)?;
        let arguments = QueueArguments::take(&mut uri)?;
        let queue_type = uri.take_choice("queue_type", &QueueType::CHOICES)?;
        let mut window = WindowLimits::new(non_zero!(256));
        window.take(&mut uri)?;
        let max_chunk_bytes = non_zero!(16 << 20);
        let start = uri.take_with("offset", START_EXPECTED, Start::parse)?;
        let (secs, millis) = (Duration::from_secs, Duration::from_millis);
        let config = Self {
            hosts,
            user: uri.user().unwrap_or("guest").into(),
            password,
            vhost,
            path: uri.path_as_typed().into(),
            names,
            queue_type: queue_type.unwrap_or(QueueType::Quorum),
            arguments,
            declare: or(uri.take_bool("declare"), true)?,
            max_chunk_bytes: or(uri.take_bytes_in("max_chunk"), max_chunk_bytes)?,
            window,
            prefetch: or(uri.take_number("prefetch"), non_zero!(256))?,
            ack_every: or(uri.take_number("ack_every"), non_zero!(64))?,
            ack_interval: or(uri.take_duration("ack_interval"), millis(100))?,
            heartbeat: or(uri.take_duration("heartbeat"), secs(10))?,
            connect_timeout: or(uri.take_duration("connect_timeout"), secs(10))?,
            confirm_timeout: or(uri.take_duration("confirm_timeout"), secs(30))?,
            reconnect_max: or(uri.take_duration("reconnect_max"), secs(2))?,
            lag_interval: or(uri.take_duration("lag_interval"), secs(1))?,
            start: start.unwrap_or(Start::First),
            position_file: uri.take_path("position_file"),
            tls: TlsFiles::take(&mut uri, SCHEME_TLS)?,
            tap_target: None,
        };
        // A name with a typing error is reported as such, and not as one that is missing.
        uri.finish()?;
        config.names.check()?;
        if start.is_some() && config.queue_type != QueueType::Stream {
            return Err(config.not_a_stream("offset"));
        }
        config.check()?;
        Ok(config)
    }

    /// Settings that exclude each other.
    fn check(&self) -> Result<(), UriError> {
        if self.queue_type == QueueType::Stream
            && let Some(setting) = self.names.dead_letters()
        {
            let why = "a stream has no dead letters";
            return Err(UriError::conflict(setting, "queue_type=stream", why));
        }
        if self.queue_type != QueueType::Stream && self.position_file.is_some() {
            return Err(self.not_a_stream("position_file"));
        }
        if !self.declare
            && let Some(setting) = self.names.dead_letters()
        {
            let why = "it belongs to a queue's declaration, and none is declared";
            return Err(UriError::conflict(setting, "declare=no", why));
        }
        self.arguments
            .check(self.queue_type, self.declare, self.names.queue.is_some())
    }

    fn not_a_stream(&self, setting: &str) -> UriError {
        let queue_type = format!("queue_type={}", self.queue_type.name());
        UriError::conflict(setting, queue_type, "only a stream is read from a position")
    }

    /// The port of a host. The default is 5672, or 5671 with TLS.
    pub(crate) fn port(&self, host: &Host) -> u16 {
        let default = if self.tls.is_some() { 5671 } else { 5672 };
        host.port.unwrap_or(default)
    }
}

/// The value from the URI, or a default.
fn or<T>(taken: Result<Option<T>, UriError>, default: T) -> Result<T, UriError> {
    taken.map(|taken| taken.unwrap_or(default))
}

/// Writes the endpoint, as a URI without credentials and settings.
impl fmt::Display for AmqpConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.tls.is_some() {
            SCHEME_TLS
        } else {
            SCHEME
        };
        write!(f, "{scheme}://")?;
        for (at, host) in self.hosts.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            write!(f, "{comma}{host}")?;
        }
        write!(f, "{}{}", self.path, self.names)
    }
}

impl fmt::Debug for AmqpConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AmqpConfig({self})")
    }
}

/// The password or its file. There is no `Debug`, so that no message shows it.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Password {
    Text(Box<str>),
    /// Each connection reads it again, so that a renewed password counts.
    File(PathBuf),
}

impl Password {
    /// The password. The line break at the end of a file does not belong to it.
    pub(crate) fn read(&self) -> Result<String, Failure> {
        let path = match self {
            Self::Text(text) => return Ok(text.to_string()),
            Self::File(path) => path,
        };
        let text = fs::read_to_string(path).map_err(|error| {
            let message = format!("password_file {}: {error}", path.display());
            Failure::last("connect to", message)
        })?;
        Ok(text.trim_end_matches(['\r', '\n']).to_owned())
    }
}

/// Where a reader begins in a stream (RabbitMQ's `x-stream-offset`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Start {
    /// With the oldest chunk of the stream.
    First,
    /// With the last batch that the broker wrote.
    Last,
    /// With the next chunk that is written.
    Next,
    /// With the chunk of this number, or the oldest one after it.
    Offset(u64),
    /// With the batch that has the chunk of this time, in seconds of Unix time.
    Timestamp(u64),
}

/// The texts of a [`Start`].
const START_EXPECTED: &str = "first, last, next, an offset, or timestamp: and seconds of Unix time";

impl Start {
    fn parse(text: &str) -> Option<Self> {
        match text {
            "first" => Some(Self::First),
            "last" => Some(Self::Last),
            "next" => Some(Self::Next),
            _ => match text.strip_prefix("timestamp:") {
                Some(seconds) => seconds.parse().ok().map(Self::Timestamp),
                None => u64::from_str(text).ok().map(Self::Offset),
            },
        }
    }

    /// The value of `x-stream-offset`.
    pub(crate) fn argument(self) -> AMQPValue {
        let text = |text: &str| AMQPValue::LongString(text.into());
        match self {
            Self::First => text("first"),
            Self::Last => text("last"),
            Self::Next => text("next"),
            Self::Offset(offset) => {
                AMQPValue::LongLongInt(i64::try_from(offset).unwrap_or(i64::MAX))
            }
            Self::Timestamp(seconds) => AMQPValue::Timestamp(seconds),
        }
    }
}

/// The medium of a reader that only looks and leaves nothing behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TapTarget {
    /// An exchange, through the reader's own queue.
    Exchange,
    /// A queue without consumers. The reader takes its chunks and gives them back.
    Queue,
    /// A stream, beside its readers.
    Stream,
}

impl AmqpConfig {
    /// Makes readers that only look. They take no chunk from other readers and leave nothing behind.
    ///
    /// They read a stream beside its other readers, from now on or from its start. From an exchange
    /// each reader gets the new chunks with the routing key, or all chunks of a topic exchange if there
    /// is no key. It has its own queue, which is exclusive and bounded and ends with the connection.
    ///
    /// # Errors
    ///
    /// It is a queue, whose chunks a reader would take from its consumers. Or it is an exchange and
    /// `from_start` is set: an exchange keeps no chunks.
    pub fn tap(mut self, from_start: bool) -> Result<Self, UriError> {
        if self.queue_type == QueueType::Stream && self.names.queue.is_some() {
            return Ok(self.looking_at_stream(if from_start {
                Start::First
            } else {
                Start::Next
            }));
        }
        let Some(exchange) = &self.names.exchange else {
            let why = "whoever reads a queue takes its chunks from the consumers; name the exchange \
                       that feeds it (exchange=name&routing_key=key), or look at a running command \
                       through its --metrics address";
            return Err(UriError::conflict("queue", "a tap", why));
        };
        if from_start {
            let why = "an exchange keeps nothing of what has passed";
            let exchange = format!("exchange={exchange}");
            return Err(UriError::conflict(exchange, "from the start", why));
        }
        self.tap_target = Some(TapTarget::Exchange);
        // A random name that no other queue has.
        let number = random();
        self.names.queue = Some(format!("baler-tap-{number:016x}").into());
        self.names.dead_letter_queue = None;
        self.names.dead_letter_exchange = None;
        self.names.dead_letter_routing_key = None;
        if self.names.exchange_kind == ExchangeKind::Topic && self.names.routing_key.is_empty() {
            self.names.routing_key = "#".into();
        }
        self.queue_type = QueueType::Classic;
        self.arguments = QueueArguments::default();
        // Nobody needs the lag of a tap.
        self.lag_interval = Duration::ZERO;
        Ok(self)
    }

    /// Makes readers that look at all existing chunks, from the oldest one on, and declare nothing.
    ///
    /// They read a stream beside its other readers. They take the chunks of a queue and give them back.
    /// The broker then marks each chunk as redelivered, and a quorum queue counts a delivery. So the
    /// connection fails if the queue has consumers. Do not settle chunks of a queue:
    /// [`Verdict::Ack`](baler_common::transport::Verdict::Ack) removes them.
    ///
    /// # Errors
    ///
    /// It is an exchange, which keeps no chunks.
    pub fn inspect(mut self) -> Result<Self, UriError> {
        if self.names.queue.is_none() {
            let why = "an exchange keeps nothing of what has passed; name the queue, or tap what \
                       comes from now on";
            return Err(UriError::conflict("exchange", "inspect", why));
        }
        if self.queue_type == QueueType::Stream {
            return Ok(self.looking_at_stream(Start::First));
        }
        self.tap_target = Some(TapTarget::Queue);
        // The reader would reject a larger chunk, and the queue would lose it.
        self.max_chunk_bytes = NonZeroU32::MAX;
        Ok(self)
    }

    fn looking_at_stream(mut self, start: Start) -> Self {
        self.tap_target = Some(TapTarget::Stream);
        self.position_file = None;
        self.start = start;
        self
    }
}
