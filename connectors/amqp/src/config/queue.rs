//! The names of the queue and the exchange, and the arguments of the queue's declaration.

use std::fmt;
use std::num::{NonZeroI64, NonZeroU8, NonZeroU16, NonZeroU32};
use std::time::Duration;

use baler_common::transport::uri::{Uri, UriError, set};
use lapin::ExchangeKind;
use lapin::types::{AMQPValue, FieldTable};

use super::QueueType;

/// The names of the queue and the exchange. None is longer than AMQP's 255 bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Names {
    /// Readers read from it. Writers write to it, unless there is an exchange.
    pub(crate) queue: Option<Box<str>>,
    /// Writers write to it.
    pub(crate) exchange: Option<Box<str>>,
    /// How the exchange finds its queues.
    pub(crate) exchange_kind: ExchangeKind,
    /// The routing key of messages. It also binds the queue, if there is one, to the exchange.
    pub(crate) routing_key: Box<str>,
    /// The number of queues, one for each lane. Their names and routing keys end in `.0` and so on.
    pub(crate) lanes: Option<NonZeroU16>,
    /// The queue for rejected chunks. It is declared.
    pub(crate) dead_letter_queue: Option<Box<str>>,
    /// The exchange for rejected chunks. It must exist.
    pub(crate) dead_letter_exchange: Option<Box<str>>,
    /// The routing key of rejected chunks. The default is the message's own.
    pub(crate) dead_letter_routing_key: Option<Box<str>>,
}

/// The most lanes that a sender has.
const MAX_LANES: u16 = 4_096;

/// The longest name that leaves room for the number of a lane.
const MAX_LANE_NAME: usize = 250;

impl Names {
    pub(super) fn take(uri: &mut Uri) -> Result<Self, UriError> {
        let mut name = |setting: &str| {
            uri.take_with(setting, "a name of 1 to 255 bytes", |text| {
                (1..=255).contains(&text.len()).then(|| Box::from(text))
            })
        };
        let mut names = Self {
            queue: name("queue")?,
            exchange: name("exchange")?,
            routing_key: name("routing_key")?.unwrap_or_default(),
            lanes: None,
            dead_letter_queue: name("dead_letter_queue")?,
            dead_letter_exchange: name("dead_letter_exchange")?,
            dead_letter_routing_key: name("dead_letter_routing_key")?,
            exchange_kind: ExchangeKind::Direct,
        };
        let kinds = [
            ("direct", ExchangeKind::Direct),
            ("fanout", ExchangeKind::Fanout),
            ("headers", ExchangeKind::Headers),
            ("topic", ExchangeKind::Topic),
        ];
        set(
            &mut names.exchange_kind,
            uri.take_choice("exchange_type", &kinds)?,
        );
        names.lanes = uri.take_with("lane_queues", "a number from 1 to 4096", |text| {
            text.parse()
                .ok()
                .filter(|lanes: &NonZeroU16| lanes.get() <= MAX_LANES)
        })?;
        Ok(names)
    }

    /// Names that are missing, or exclude each other.
    pub(super) fn check(&self) -> Result<(), UriError> {
        if self.queue.is_none() && self.exchange.is_none() {
            return Err(UriError::missing("the setting queue or exchange"));
        }
        if self.exchange.is_none() && !self.routing_key.is_empty() {
            return Err(UriError::missing(
                "a routing_key is for an exchange: the setting exchange",
            ));
        }
        if self.dead_letter_queue.is_some() && self.dead_letter_exchange.is_some() {
            let why = "rejected chunks go to one of them";
            let (first, second) = ("dead_letter_queue", "dead_letter_exchange");
            return Err(UriError::conflict(first, second, why));
        }
        if self.dead_letter_exchange.is_none() && self.dead_letter_routing_key.is_some() {
            return Err(UriError::missing(
                "a dead_letter_routing_key is for an exchange: the setting dead_letter_exchange",
            ));
        }
        if self.queue.is_none()
            && let Some(setting) = self.dead_letters()
        {
            let what = format!("{setting} is for a queue: the setting queue");
            return Err(UriError::missing(what));
        }
        if self.lanes.is_some() {
            self.check_lanes()?;
        }
        Ok(())
    }

    /// Settings that exclude a queue for each lane.
    fn check_lanes(&self) -> Result<(), UriError> {
        let other = match self.exchange_kind {
            ExchangeKind::Fanout => Some("exchange_type=fanout"),
            ExchangeKind::Headers => Some("exchange_type=headers"),
            _ => None,
        };
        if let Some(other) = other {
            let why = "such an exchange does not choose a queue by the routing key";
            return Err(UriError::conflict("lane_queues", other, why));
        }
        let queue = self.queue.as_ref().map_or(0, |queue| queue.len());
        if queue.max(self.routing_key.len()) > MAX_LANE_NAME {
            let what =
                "with lane_queues, queue and routing_key have 250 bytes at most: a shorter name";
            return Err(UriError::missing(what));
        }
        Ok(())
    }

    /// The setting with the destination of rejected chunks, if there is one.
    pub(super) fn dead_letters(&self) -> Option<&'static str> {
        let queue = self.dead_letter_queue.as_ref();
        let exchange = self.dead_letter_exchange.as_ref();
        let queue = queue.map(|_| "dead_letter_queue");
        queue.or_else(|| exchange.map(|_| "dead_letter_exchange"))
    }

    /// The exchange to publish to, and the routing key, or one for each lane. The exchange without a
    /// name routes each message to the queue with the name of the key.
    pub(crate) fn target(&self) -> (&str, Vec<String>) {
        match (&self.exchange, &self.queue) {
            (Some(exchange), _) => (exchange, self.of_lanes(&self.routing_key)),
            (None, queue) => ("", self.of_lanes(queue.as_deref().unwrap_or_default())),
        }
    }

    /// The name, or with lanes the name for each lane.
    pub(crate) fn of_lanes(&self, name: &str) -> Vec<String> {
        let dot = if name.is_empty() { "" } else { "." };
        match self.lanes {
            None => vec![name.to_owned()],
            Some(lanes) => (0..lanes.get())
                .map(|lane| format!("{name}{dot}{lane}"))
                .collect(),
        }
    }
}

/// Writes the query of a URI.
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
        match self.lanes {
            Some(lanes) => write!(f, "&lane_queues={lanes}"),
            None => Ok(()),
        }
    }
}

/// The settings that are arguments of the queue's declaration, with RabbitMQ's names and the types of
/// queues that know them.
const ARGUMENTS: [(&str, &str, &[QueueType]); 9] = {
    use QueueType::{Classic, Quorum, Stream};
    [
        ("max_length", "x-max-length", &[Classic, Quorum]),
        (
            "max_length_bytes",
            "x-max-length-bytes",
            &[Classic, Quorum, Stream],
        ),
        ("overflow", "x-overflow", &[Classic, Quorum]),
        ("delivery_limit", "x-delivery-limit", &[Quorum]),
        ("message_ttl", "x-message-ttl", &[Classic, Quorum]),
        ("max_age", "x-max-age", &[Stream]),
        ("replicas", "x-quorum-initial-group-size", &[Quorum]),
        ("replicas", "x-initial-cluster-size", &[Stream]),
        (
            "single_active",
            "x-single-active-consumer",
            &[Classic, Quorum],
        ),
    ]
};

/// The arguments of the queue's declaration. The broker's defaults and policies decide about missing
/// arguments.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct QueueArguments {
    /// The settings that are given, and their values.
    given: Vec<(&'static str, AMQPValue)>,
    pub(crate) single_active: bool,
}

/// A full queue drops its oldest chunk.
const DROP_HEAD: &str = "drop-head";

/// A full queue refuses the new chunk, and the writer's owner tries again.
const REJECT_PUBLISH: &str = "reject-publish";

impl QueueArguments {
    pub(super) fn take(uri: &mut Uri) -> Result<Self, UriError> {
        let number = AMQPValue::LongLongInt;
        let text = |value: &str| AMQPValue::LongString(value.into());
        let max_length: Option<NonZeroI64> = uri.take_number("max_length")?;
        let max_length_bytes: Option<NonZeroI64> = uri.take_bytes_in("max_length_bytes")?;
        let overflow = [(DROP_HEAD, DROP_HEAD), (REJECT_PUBLISH, REJECT_PUBLISH)];
        let overflow = uri.take_choice("overflow", &overflow)?;
        let delivery_limit: Option<NonZeroU32> = uri.take_number("delivery_limit")?;
        let message_ttl = uri.take_duration("message_ttl")?;
        let max_age = uri.take_duration("max_age")?;
        let replicas: Option<NonZeroU8> = uri.take_number("replicas")?;
        let single_active = uri.take_bool("single_active")?.unwrap_or(false);
        // RabbitMQ counts it in milliseconds, in 32 bits.
        let message_ttl = message_ttl.map(|ttl| u32::try_from(ttl.as_millis()));
        let is_above = |_| UriError::missing("message_ttl is above 49 days: one below");
        let message_ttl = message_ttl.transpose().map_err(is_above)?;
        if max_age.is_some_and(|age| age.as_secs() == 0) {
            return Err(UriError::missing("max_age is below 1s: one above"));
        }
        let seconds = |time: Duration| text(&format!("{}s", time.as_secs()));
        let all = [
            ("max_length", max_length.map(|it| number(it.get()))),
            (
                "max_length_bytes",
                max_length_bytes.map(|it| number(it.get())),
            ),
            ("overflow", overflow.map(text)),
            (
                "delivery_limit",
                delivery_limit.map(|it| number(it.get().into())),
            ),
            ("message_ttl", message_ttl.map(|it| number(it.into()))),
            ("max_age", max_age.map(seconds)),
            ("replicas", replicas.map(|it| number(it.get().into()))),
            (
                "single_active",
                single_active.then_some(AMQPValue::Boolean(true)),
            ),
        ];
        let given = all.into_iter();
        let given = given.filter_map(|(setting, value)| Some((setting, value?)));
        Ok(Self {
            given: given.collect(),
            single_active,
        })
    }

    fn value(&self, setting: &str) -> Option<&AMQPValue> {
        let found = self.given.iter().find(|(given, _)| *given == setting);
        found.map(|(_, value)| value)
    }

    /// Whether the queue has a limit of chunks or bytes.
    fn is_bounded(&self) -> bool {
        self.value("max_length")
            .or_else(|| self.value("max_length_bytes"))
            .is_some()
    }

    /// Settings that exclude each other.
    pub(super) fn check(
        &self,
        queue_type: QueueType,
        declares: bool,
        has_queue: bool,
    ) -> Result<(), UriError> {
        for (setting, _) in &self.given {
            if !has_queue {
                let what = format!("{setting} is for a queue: the setting queue");
                return Err(UriError::missing(what));
            }
            if !declares {
                let why = "it belongs to a queue's declaration, and none is declared";
                return Err(UriError::conflict(*setting, "declare=no", why));
            }
            let rows = ARGUMENTS.iter().filter(|(known, ..)| known == setting);
            let known: Vec<_> = rows.flat_map(|(.., types)| *types).collect();
            if !known.contains(&&queue_type) {
                let second = format!("queue_type={}", queue_type.name());
                let known: Vec<_> = known.iter().map(|known| known.name()).collect();
                let why = format!("only {} queues know it", known.join(" and "));
                return Err(UriError::conflict(*setting, second, why));
            }
        }
        if self.value("overflow").is_some() && !self.is_bounded() {
            let what = "overflow is for a queue with a limit: the setting max_length or \
                        max_length_bytes";
            return Err(UriError::missing(what));
        }
        Ok(())
    }

    /// Adds the arguments of a declaration.
    ///
    /// By RabbitMQ's default a full queue drops its oldest messages, and confirmed chunks would be
    /// lost. Here it refuses new ones unless the operator decides otherwise.
    pub(crate) fn add_to(&self, queue_type: QueueType, arguments: &mut FieldTable) {
        if self.is_bounded() && queue_type != QueueType::Stream {
            let refuses = AMQPValue::LongString(REJECT_PUBLISH.into());
            arguments.insert("x-overflow".into(), refuses);
        }
        for (setting, name, types) in ARGUMENTS {
            if let Some(value) = self.value(setting)
                && types.contains(&queue_type)
            {
                arguments.insert(name.into(), value.clone());
            }
        }
    }
}
