//! The queue and the exchange: their names, how much a queue may hold, for how long, and for whom.

use std::fmt;
use std::num::{NonZeroU8, NonZeroU32, NonZeroU64};
use std::time::Duration;

use baler_common::transport::uri::{Uri, UriError};
use lapin::types::{AMQPValue, FieldTable};

use super::QueueType;

/// The names of what chunks go to and come from. None is longer than AMQP's 255 bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Names {
    /// What is read, and written to unless there is an exchange.
    pub(crate) queue: Option<Box<str>>,
    /// What is written to instead.
    pub(crate) exchange: Option<Box<str>>,
    pub(crate) exchange_kind: ExchangeKind,
    /// With what; the queue, if there is one, is bound by it.
    pub(crate) routing_key: Box<str>,
    /// Where rejected chunks go: a queue that is declared, or an exchange that is there.
    pub(crate) dead_letter_queue: Option<Box<str>>,
    pub(crate) dead_letter_exchange: Option<Box<str>>,
    /// With what; the message's own, if there is none.
    pub(crate) dead_letter_routing_key: Option<Box<str>>,
}

/// How an exchange finds its queues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExchangeKind {
    Direct,
    Fanout,
    Headers,
    Topic,
}

impl ExchangeKind {
    const CHOICES: [(&'static str, Self); 4] = [
        ("direct", Self::Direct),
        ("fanout", Self::Fanout),
        ("headers", Self::Headers),
        ("topic", Self::Topic),
    ];
}

impl Names {
    pub(super) fn take(uri: &mut Uri) -> Result<Self, UriError> {
        let mut name = |setting: &str| {
            uri.take_with(setting, "a name of 1 to 255 bytes", |text| {
                (1..=255).contains(&text.len()).then(|| Box::from(text))
            })
        };
        let names = Self {
            queue: name("queue")?,
            exchange: name("exchange")?,
            routing_key: name("routing_key")?.unwrap_or_default(),
            dead_letter_queue: name("dead_letter_queue")?,
            dead_letter_exchange: name("dead_letter_exchange")?,
            dead_letter_routing_key: name("dead_letter_routing_key")?,
            exchange_kind: uri
                .take_choice("exchange_type", &ExchangeKind::CHOICES)?
                .unwrap_or(ExchangeKind::Direct),
        };
        if names.queue.is_none() && names.exchange.is_none() {
            return Err(UriError::missing("the setting queue or exchange"));
        }
        if names.exchange.is_none() && !names.routing_key.is_empty() {
            return Err(UriError::missing(
                "a routing_key is for an exchange: the setting exchange",
            ));
        }
        if names.dead_letter_queue.is_some() && names.dead_letter_exchange.is_some() {
            let why = "rejected chunks go to one of them";
            let (first, second) = ("dead_letter_queue", "dead_letter_exchange");
            return Err(UriError::conflict(first, second, why));
        }
        if names.dead_letter_exchange.is_none() && names.dead_letter_routing_key.is_some() {
            return Err(UriError::missing(
                "a dead_letter_routing_key is for an exchange: the setting dead_letter_exchange",
            ));
        }
        if names.queue.is_none()
            && let Some(setting) = names.dead_letters()
        {
            let what = format!("{setting} is for a queue: the setting queue");
            return Err(UriError::missing(what));
        }
        Ok(names)
    }

    /// The setting that says where rejected chunks go, if one does.
    pub(super) fn dead_letters(&self) -> Option<&'static str> {
        let queue = self.dead_letter_queue.as_ref();
        let exchange = self.dead_letter_exchange.as_ref();
        let queue = queue.map(|_| "dead_letter_queue");
        queue.or_else(|| exchange.map(|_| "dead_letter_exchange"))
    }

    /// The exchange to publish to and the routing key to do it with. Every queue is bound to the
    /// exchange without a name by its own name.
    pub(crate) fn target(&self) -> (&str, &str) {
        match (&self.exchange, &self.queue) {
            (Some(exchange), _) => (exchange, &self.routing_key),
            (None, queue) => ("", queue.as_deref().unwrap_or_default()),
        }
    }
}

/// As the query of a URI.
impl fmt::Display for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut mark = '?';
        if let Some(exchange) = &self.exchange {
            write!(f, "?exchange={exchange}")?;
            mark = '&';
            if !self.routing_key.is_empty() {
                write!(f, "&routing_key={}", self.routing_key)?;
            }
        }
        if let Some(queue) = &self.queue {
            write!(f, "{mark}queue={queue}")?;
        }
        Ok(())
    }
}

/// How much a queue may hold, for how long, and for whom. What is not named is the broker's to say,
/// by its defaults and policies.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct QueueArguments {
    max_length: Option<NonZeroU64>,
    max_length_bytes: Option<NonZeroU64>,
    overflow: Option<Overflow>,
    delivery_limit: Option<NonZeroU32>,
    message_ttl: Option<Duration>,
    max_age: Option<Duration>,
    replicas: Option<NonZeroU8>,
    pub(crate) single_active: bool,
}

/// What becomes of a chunk when a queue is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Overflow {
    /// The oldest one makes place, and is lost.
    DropHead,
    /// It is refused, and the writer's owner tries again.
    RejectPublish,
}

impl Overflow {
    const CHOICES: [(&'static str, Self); 2] = [
        ("drop-head", Self::DropHead),
        ("reject-publish", Self::RejectPublish),
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::DropHead => "drop-head",
            Self::RejectPublish => "reject-publish",
        }
    }
}

/// RabbitMQ counts a message's time to live in milliseconds, in 32 bits.
const TTL_MOST: Duration = Duration::from_millis(u32::MAX as u64);

impl QueueArguments {
    pub(super) fn take(uri: &mut Uri) -> Result<Self, UriError> {
        let limits = Self {
            max_length: uri.take_number("max_length")?,
            max_length_bytes: uri.take_bytes_in("max_length_bytes")?,
            overflow: uri.take_choice("overflow", &Overflow::CHOICES)?,
            delivery_limit: uri.take_number("delivery_limit")?,
            message_ttl: uri.take_duration("message_ttl")?,
            max_age: uri.take_duration("max_age")?,
            replicas: uri.take_number("replicas")?,
            single_active: uri.take_bool("single_active")?.unwrap_or(false),
        };
        if limits.message_ttl.is_some_and(|ttl| ttl > TTL_MOST) {
            return Err(UriError::missing("message_ttl is above 49 days: one below"));
        }
        if limits.max_age.is_some_and(|age| age.as_secs() == 0) {
            return Err(UriError::missing("max_age is below 1s: one above"));
        }
        Ok(limits)
    }

    /// What is set, and which queues know it.
    fn set(&self) -> impl Iterator<Item = (&'static str, &'static [QueueType])> {
        use QueueType::{Classic, Quorum, Stream};
        let all: [(_, _, &[QueueType]); 8] = [
            ("max_length", self.max_length.is_some(), &[Classic, Quorum]),
            (
                "max_length_bytes",
                self.max_length_bytes.is_some(),
                &[Classic, Quorum, Stream],
            ),
            ("overflow", self.overflow.is_some(), &[Classic, Quorum]),
            ("delivery_limit", self.delivery_limit.is_some(), &[Quorum]),
            (
                "message_ttl",
                self.message_ttl.is_some(),
                &[Classic, Quorum],
            ),
            ("max_age", self.max_age.is_some(), &[Stream]),
            ("replicas", self.replicas.is_some(), &[Quorum, Stream]),
            ("single_active", self.single_active, &[Classic, Quorum]),
        ];
        all.into_iter()
            .filter(|(_, is_set, _)| *is_set)
            .map(|(name, _, types)| (name, types))
    }

    /// Settings that exclude each other.
    pub(super) fn check(
        &self,
        queue_type: QueueType,
        declares: bool,
        has_queue: bool,
    ) -> Result<(), UriError> {
        for (name, types) in self.set() {
            if !has_queue {
                let what = format!("{name} is for a queue: the setting queue");
                return Err(UriError::missing(what));
            }
            if !declares {
                let why = "it belongs to a queue's declaration, and none is declared";
                return Err(UriError::conflict(name, "declare=no", why));
            }
            if !types.contains(&queue_type) {
                let second = format!("queue_type={}", queue_type.name());
                let known: Vec<_> = types.iter().map(|known| known.name()).collect();
                let why = format!("only {} queues know it", known.join(" and "));
                return Err(UriError::conflict(name, second, why));
            }
        }
        if self.overflow.is_some() && self.max_length.is_none() && self.max_length_bytes.is_none() {
            let what = "overflow is for a queue with a limit: the setting max_length or \
                        max_length_bytes";
            return Err(UriError::missing(what));
        }
        Ok(())
    }

    /// Adds the arguments of a declaration.
    ///
    /// RabbitMQ's own default for a full queue is to drop its oldest messages; here it refuses the
    /// new ones unless the operator wants otherwise, since confirmed chunks would be lost.
    pub(crate) fn add_to(&self, queue_type: QueueType, arguments: &mut FieldTable) {
        let mut add = |name: &str, value: AMQPValue| {
            arguments.insert(name.into(), value);
        };
        let number = |value: u64| AMQPValue::LongLongInt(i64::try_from(value).unwrap_or(i64::MAX));
        let text = |value: &str| AMQPValue::LongString(value.into());
        if let Some(limit) = self.max_length {
            add("x-max-length", number(limit.get()));
        }
        if let Some(limit) = self.max_length_bytes {
            add("x-max-length-bytes", number(limit.get()));
        }
        let is_bounded = self.max_length.is_some() || self.max_length_bytes.is_some();
        if is_bounded && queue_type != QueueType::Stream {
            let overflow = self.overflow.unwrap_or(Overflow::RejectPublish);
            add("x-overflow", text(overflow.name()));
        }
        if let Some(limit) = self.delivery_limit {
            add("x-delivery-limit", number(limit.get().into()));
        }
        if let Some(ttl) = self.message_ttl {
            let millis = u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX);
            add("x-message-ttl", number(millis));
        }
        if let Some(age) = self.max_age {
            add("x-max-age", text(&format!("{}s", age.as_secs())));
        }
        if let Some(replicas) = self.replicas {
            let name = match queue_type {
                QueueType::Stream => "x-initial-cluster-size",
                QueueType::Classic | QueueType::Quorum => "x-quorum-initial-group-size",
            };
            add(name, number(replicas.get().into()));
        }
        if self.single_active {
            add("x-single-active-consumer", AMQPValue::Boolean(true));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(query: &str) -> Result<QueueArguments, UriError> {
        QueueArguments::take(&mut Uri::parse(&format!("amqp://host?{query}")).unwrap())
    }

    fn declared(query: &str, queue_type: QueueType) -> Vec<String> {
        let limits = limits(query).unwrap();
        limits.check(queue_type, true, true).unwrap();
        let mut arguments = FieldTable::default();
        limits.add_to(queue_type, &mut arguments);
        let names = arguments.inner().keys();
        names.map(ToString::to_string).collect()
    }

    #[test]
    fn full_queue_refuses_unless_the_operator_wants_otherwise() {
        let overflow = |query| {
            let mut arguments = FieldTable::default();
            let limits = limits(query).unwrap();
            limits.add_to(QueueType::Quorum, &mut arguments);
            arguments.inner().get("x-overflow").cloned()
        };
        let text = |text: &str| Some(AMQPValue::LongString(text.into()));
        assert_eq!(overflow("max_length=5"), text("reject-publish"));
        assert_eq!(
            overflow("max_length_bytes=5MiB&overflow=drop-head"),
            text("drop-head")
        );
        assert_eq!(overflow("message_ttl=1h"), None);
    }

    #[test]
    fn each_kind_of_queue_is_declared_with_what_it_knows() {
        assert_eq!(
            declared("delivery_limit=3&replicas=3", QueueType::Quorum),
            ["x-delivery-limit", "x-quorum-initial-group-size"]
        );
        assert_eq!(
            declared(
                "max_length_bytes=1GB&max_age=7d&replicas=3",
                QueueType::Stream
            ),
            ["x-initial-cluster-size", "x-max-age", "x-max-length-bytes"]
        );
        assert_eq!(
            declared(
                "max_length=9&message_ttl=1m&single_active=yes",
                QueueType::Classic
            ),
            [
                "x-max-length",
                "x-message-ttl",
                "x-overflow",
                "x-single-active-consumer"
            ]
        );
    }

    #[test]
    fn limit_that_a_queue_does_not_know_is_an_error_that_names_both() {
        let error = |query: &str, queue_type, declares| {
            let limits = limits(query).unwrap();
            limits
                .check(queue_type, declares, true)
                .unwrap_err()
                .to_string()
        };
        let both = |text: String, other: &str| {
            assert!(text.contains(other), "{text}");
            text
        };
        let text = error("delivery_limit=3", QueueType::Classic, true);
        assert!(both(text, "queue_type=classic").contains("delivery_limit"));
        let text = error("max_length=3", QueueType::Stream, true);
        assert!(both(text, "queue_type=stream").contains("max_length"));
        let text = error("max_age=1h", QueueType::Quorum, true);
        assert!(both(text, "queue_type=quorum").contains("max_age"));
        let text = error("max_length=3", QueueType::Quorum, false);
        assert!(both(text, "declare=no").contains("max_length"));
        let text = error("overflow=drop-head", QueueType::Quorum, true);
        assert!(both(text, "overflow").contains("max_length"));
        assert!(limits("message_ttl=50d").is_err() && limits("max_age=200ms").is_err());
    }
}
