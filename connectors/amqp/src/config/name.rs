//! The names of what chunks go to and come from.

use std::fmt;

use baler_common::transport::uri::{Uri, UriError};

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
