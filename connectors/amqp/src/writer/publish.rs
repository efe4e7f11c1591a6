//! The thread of a connection: it connects, and looks after what is published on it.

use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::Instant;

use baler_common::transport::{Chunk, Failure};
use lapin::options::{BasicPublishOptions, ConfirmSelectOptions};
use lapin::types::ShortString;
use lapin::{Channel, Confirmation, Event};

use super::line::Publish;
use super::link::{Link, Next};
use crate::config::AmqpConfig;
use crate::connect::{Connected, connect, next};
use crate::error;
use crate::headers;

/// Connects before `by` and says so; looks after the connection until it is gone or stopped.
pub(super) async fn run(
    link: Arc<Link>,
    config: Arc<AmqpConfig>,
    opened: SyncSender<Result<(), Failure>>,
    by: Instant,
) {
    let connected = match open(&config, &link, by).await {
        Ok(connected) => connected,
        Err(failure) => {
            // Whoever gave up waiting is not told.
            opened.send(Err(failure)).ok();
            return;
        }
    };
    link.open(publishing(&config, connected.channel.clone()));
    opened.send(Ok(())).ok();
    let ended = watch(&link, &config, &connected).await;
    if let Err(failure) = &ended {
        link.fail(failure.clone());
    }
    link.detach();
    if let Ok(by) = ended {
        // Everything that can be told was told.
        connected.close(by).await.ok();
    }
}

async fn open(config: &AmqpConfig, link: &Link, by: Instant) -> Result<Connected, Failure> {
    let connected = connect(config, "baler writer", Some(&link.gate), by).await?;
    let selecting = connected
        .channel
        .confirm_select(ConfirmSelectOptions::default());
    match tokio::time::timeout_at(by.into(), selecting).await {
        Ok(Ok(())) => Ok(connected),
        Ok(Err(error)) => Err(error::of_setup("set up", &error)),
        Err(_) => Err(Failure::retry("set up", "no answer in time")),
    }
}

/// Looks after the connection until it is stopped; yields until when to say good-bye.
async fn watch(
    link: &Link,
    config: &AmqpConfig,
    connected: &Connected,
) -> Result<Instant, Failure> {
    let mut events = connected.connection.events_listener();
    loop {
        let until = match link.look(Instant::now(), config.confirm_timeout) {
            Next::Wait(until) => until,
            Next::Stop(by) => return Ok(by),
            Next::Fail(failure) => return Err(failure),
        };
        tokio::select! {
            () = link.bell.rung() => {}
            () = at(until) => {}
            event = next(&mut events) => match event {
                Some(Event::ConnectionBlocked(_)) => link.set_blocked(true),
                Some(Event::ConnectionUnblocked) => link.set_blocked(false),
                Some(Event::Error(error)) => return Err(error::of_use("publish to", &error)),
                Some(_) => {}
                None => return Err(Failure::retry("publish to", "the connection ended")),
            },
        }
    }
}

/// Waits for a time; for ever if there is none.
async fn at(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time.into()).await,
        None => std::future::pending().await,
    }
}

/// How chunks are published on a channel.
fn publishing(config: &AmqpConfig, channel: Channel) -> Publish {
    let (exchange, routing_key) = config.names.target();
    let (exchange, routing_key) = (ShortString::from(exchange), ShortString::from(routing_key));
    Box::new(move |chunk| {
        let (exchange, routing_key) = (exchange.clone(), routing_key.clone());
        Box::pin(publish_one(channel.clone(), exchange, routing_key, chunk))
    })
}

/// Publishes a chunk and waits for the broker's answer.
async fn publish_one(
    channel: Channel,
    exchange: ShortString,
    routing_key: ShortString,
    chunk: Chunk,
) -> lapin::Result<Confirmation> {
    let options = BasicPublishOptions {
        // Else a chunk that no queue takes would be confirmed and lost.
        mandatory: true,
        immediate: false,
    };
    let properties = headers::properties(&chunk.meta);
    let publishing =
        channel.basic_publish(exchange, routing_key, options, &chunk.bytes, properties);
    publishing.await?.await
}
