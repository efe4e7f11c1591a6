//! What must exist on the broker. Declared anew at every connection: what is there already is left
//! as it is, and what a restored or replaced broker lost is made again.

use baler_common::transport::Failure;
use lapin::options::{ExchangeDeclareOptions, QueueBindOptions, QueueDeclareOptions};
use lapin::types::{AMQPValue, FieldTable};
use lapin::{Channel, ExchangeKind as Kind};

use crate::config::{AmqpConfig, ExchangeKind, QueueType, TapTarget};
use crate::error;

/// Declares the exchange, the queue or one for each lane, their bindings and the queue for dead
/// letters, as far as they are named.
pub(crate) async fn declare(channel: &Channel, config: &AmqpConfig) -> Result<(), Failure> {
    match config.tap_target {
        None if config.declare => {}
        None | Some(TapTarget::Stream) => return Ok(()),
        Some(TapTarget::Exchange) => return declare_tap(channel, config).await,
        Some(TapTarget::Queue) => return check_unread(channel, config).await,
    }
    let failed = |error: lapin::Error| error::of_declaration(&error);
    let names = &config.names;
    if let Some(exchange) = names.exchange.as_deref().filter(|name| is_ours(name)) {
        let options = ExchangeDeclareOptions {
            durable: true,
            ..ExchangeDeclareOptions::default()
        };
        let kind = match names.exchange_kind {
            ExchangeKind::Direct => Kind::Direct,
            ExchangeKind::Fanout => Kind::Fanout,
            ExchangeKind::Headers => Kind::Headers,
            ExchangeKind::Topic => Kind::Topic,
        };
        channel
            .exchange_declare(exchange.into(), kind, options, FieldTable::default())
            .await
            .map_err(failed)?;
    }
    let durable = QueueDeclareOptions {
        durable: true,
        ..QueueDeclareOptions::default()
    };
    if let Some(dead) = &names.dead_letter_queue {
        let arguments = arguments(config.queue_type);
        let dead = (**dead).into();
        channel
            .queue_declare(dead, durable, arguments)
            .await
            .map_err(failed)?;
    }
    let Some(queue) = &names.queue else {
        return Ok(());
    };
    let keys = names.of_lanes(&names.routing_key);
    for (queue, key) in names.of_lanes(queue).into_iter().zip(keys) {
        channel
            .queue_declare(queue.as_str().into(), durable, queue_arguments(config))
            .await
            .map_err(failed)?;
        if let Some(exchange) = &names.exchange {
            bind(channel, &queue, exchange, &key)
                .await
                .map_err(failed)?;
        }
    }
    Ok(())
}

/// Lets a queue have what comes to an exchange with this key.
async fn bind(
    channel: &Channel,
    queue: &str,
    exchange: &str,
    routing_key: &str,
) -> lapin::Result<()> {
    channel
        .queue_bind(
            queue.into(),
            exchange.into(),
            routing_key.into(),
            QueueBindOptions::default(),
            FieldTable::default(),
        )
        .await
}

/// The most chunks that wait for one who only looks; the oldest ones make room.
const TAP_CHUNKS: i64 = 10_000;

/// And their bytes.
const TAP_BYTES: i64 = 64 << 20;

/// Declares what one who only looks at an exchange needs: a queue that nobody else may use and that
/// ends with the connection.
async fn declare_tap(channel: &Channel, config: &AmqpConfig) -> Result<(), Failure> {
    let failed = |error: lapin::Error| error::of_setup("look at", &error);
    let names = &config.names;
    let (Some(queue), Some(exchange)) = (&names.queue, &names.exchange) else {
        return Ok(());
    };
    let options = QueueDeclareOptions {
        exclusive: true,
        auto_delete: true,
        ..QueueDeclareOptions::default()
    };
    channel
        .queue_declare((**queue).into(), options, tap_arguments())
        .await
        .map_err(failed)?;
    for key in names.of_lanes(&names.routing_key) {
        bind(channel, queue, exchange, &key).await.map_err(failed)?;
    }
    Ok(())
}

/// Checks that a queue is there, and that it has no consumers: a look would take chunks from them.
async fn check_unread(channel: &Channel, config: &AmqpConfig) -> Result<(), Failure> {
    const OPERATION: &str = "look at";
    let queue = config.names.queue.as_deref().unwrap_or_default();
    let options = QueueDeclareOptions {
        passive: true,
        ..QueueDeclareOptions::default()
    };
    let found = channel
        .queue_declare(queue.into(), options, FieldTable::default())
        .await
        .map_err(|error| error::of_setup(OPERATION, &error))?;
    match found.consumer_count() {
        0 => Ok(()),
        consumers => Err(Failure::last(
            OPERATION,
            format!(
                "the queue {queue} has consumers ({consumers}), and a look would take chunks from \
                 them; tap the exchange that feeds it (exchange=name&routing_key=key) or a running \
                 command's --metrics address, or look when the consumers are gone"
            ),
        )),
    }
}

/// Whether a name can be declared: those that begin with `amq.` are the broker's.
fn is_ours(exchange: &str) -> bool {
    !exchange.starts_with("amq.")
}

/// What the queue is declared with.
pub(crate) fn queue_arguments(config: &AmqpConfig) -> FieldTable {
    let mut arguments = arguments(config.queue_type);
    config.arguments.add_to(config.queue_type, &mut arguments);
    let mut set = |name: &str, value: &str| {
        arguments.insert(name.into(), AMQPValue::LongString(value.into()));
    };
    let names = &config.names;
    if let Some(dead) = &names.dead_letter_queue {
        // The exchange without a name knows every queue by its name.
        set("x-dead-letter-exchange", "");
        set("x-dead-letter-routing-key", dead);
    }
    if let Some(exchange) = &names.dead_letter_exchange {
        set("x-dead-letter-exchange", exchange);
        if let Some(key) = &names.dead_letter_routing_key {
            set("x-dead-letter-routing-key", key);
        }
    }
    arguments
}

/// What the queue of one who looks at an exchange is declared with.
pub(crate) fn tap_arguments() -> FieldTable {
    let mut limits = arguments(QueueType::Classic);
    for (name, most) in [
        ("x-max-length", TAP_CHUNKS),
        ("x-max-length-bytes", TAP_BYTES),
    ] {
        limits.insert(name.into(), AMQPValue::LongLongInt(most));
    }
    limits
}

fn arguments(queue_type: QueueType) -> FieldTable {
    let mut arguments = FieldTable::default();
    let queue_type = AMQPValue::LongString(queue_type.name().into());
    arguments.insert("x-queue-type".into(), queue_type);
    arguments
}
