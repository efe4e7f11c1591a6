//! What must exist on the broker. Declared anew at every connection: what is there already is left
//! as it is, and what a restored or replaced broker lost is made again.

use lapin::options::{ExchangeDeclareOptions, QueueBindOptions, QueueDeclareOptions};
use lapin::types::{AMQPValue, FieldTable};
use lapin::{Channel, ExchangeKind as Kind};

use crate::config::{AmqpConfig, ExchangeKind, QueueType};
use crate::error::Failure;

/// Declares the exchange, the queue, their binding and the queue for dead letters, as far as they
/// are named.
pub(crate) async fn declare(channel: &Channel, config: &AmqpConfig) -> Result<(), Failure> {
    if !config.declare {
        return Ok(());
    }
    let failed = |error: lapin::Error| Failure::of_setup("declare", &error);
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
    let mut arguments = arguments(config.queue_type);
    config.limits.add_to(config.queue_type, &mut arguments);
    let mut set = |name: &str, value: &str| {
        arguments.insert(name.into(), AMQPValue::LongString(value.into()));
    };
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
    channel
        .queue_declare((**queue).into(), durable, arguments)
        .await
        .map_err(failed)?;
    if let Some(exchange) = &names.exchange {
        channel
            .queue_bind(
                (**queue).into(),
                (**exchange).into(),
                (*names.routing_key).into(),
                QueueBindOptions::default(),
                FieldTable::default(),
            )
            .await
            .map_err(failed)?;
    }
    Ok(())
}

/// Whether a name can be declared: those that begin with `amq.` are the broker's.
fn is_ours(exchange: &str) -> bool {
    !exchange.starts_with("amq.")
}

fn arguments(queue_type: QueueType) -> FieldTable {
    let mut arguments = FieldTable::default();
    let queue_type = AMQPValue::LongString(queue_type.name().into());
    arguments.insert("x-queue-type".into(), queue_type);
    arguments
}
