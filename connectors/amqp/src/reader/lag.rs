//! How many messages a queue holds, asked for from time to time.

use std::convert::Infallible;

use lapin::options::QueueDeclareOptions;
use lapin::types::FieldTable;
use lapin::{Channel, Connection};

use super::shared::Shared;
use crate::config::AmqpConfig;

/// Asks how many messages the queue holds, each `lag_interval`, on a channel of its own: the broker
/// closes a channel over a queue that is not there, and that one must not be the one that reads.
/// The owner keeps it until the connection is closed: a channel that is dropped meanwhile spoils
/// that.
pub(super) async fn watch(
    shared: &Shared,
    config: &AmqpConfig,
    queue: &str,
    connection: &Connection,
    channel: &mut Option<Channel>,
) -> Infallible {
    if config.lag_interval.is_zero() {
        return std::future::pending().await;
    }
    loop {
        match ask(connection, channel, queue).await {
            Ok(messages) => shared.set_ready(messages),
            // Who reads learns why from its own channel; the next turn takes a new one here.
            Err(_) => *channel = None,
        }
        tokio::time::sleep(config.lag_interval).await;
    }
}

async fn ask(
    connection: &Connection,
    channel: &mut Option<Channel>,
    queue: &str,
) -> lapin::Result<u64> {
    let channel = match channel {
        Some(channel) => channel,
        None => channel.insert(connection.create_channel().await?),
    };
    let options = QueueDeclareOptions {
        passive: true,
        ..QueueDeclareOptions::default()
    };
    let declared = channel
        .queue_declare(queue.into(), options, FieldTable::default())
        .await?;
    Ok(declared.message_count().into())
}
