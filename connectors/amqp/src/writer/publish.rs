//! The thread that publishes: the only one on its channel, since two could swap delivery tags.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::task::{Context, Poll};
use std::time::Instant;

use baler_common::transport::{Chunk, Failure};
use lapin::options::{BasicPublishOptions, ConfirmSelectOptions};
use lapin::types::ShortString;
use lapin::{Channel, Confirmation, Event};

use super::link::{Answer, Link};
use crate::config::AmqpConfig;
use crate::connect::{Connected, connect, next};
use crate::error;
use crate::headers;

/// Connects before `by` and says so, then publishes until the connection is gone or it is stopped.
pub(super) async fn run(
    link: Arc<Link>,
    config: Arc<AmqpConfig>,
    opened: SyncSender<Result<(), Failure>>,
    by: Instant,
) {
    let connected = match open(&config, by).await {
        Ok(connected) => connected,
        Err(failure) => {
            // Whoever gave up waiting is not told.
            opened.send(Err(failure)).ok();
            return;
        }
    };
    link.open();
    opened.send(Ok(())).ok();
    match publish(&link, &config, &connected).await {
        Ok(by) => {
            // Everything that can be told was told.
            connected.close(by).await.ok();
        }
        Err(failure) => link.fail(failure),
    }
}

async fn open(config: &AmqpConfig, by: Instant) -> Result<Connected, Failure> {
    let connected = connect(config, "baler writer", by).await?;
    let selecting = connected
        .channel
        .confirm_select(ConfirmSelectOptions::default());
    match tokio::time::timeout_at(by.into(), selecting).await {
        Ok(Ok(())) => Ok(connected),
        Ok(Err(error)) => Err(error::of_setup("set up", &error)),
        Err(_) => Err(Failure::retry("set up", "no answer in time")),
    }
}

type Confirming = Pin<Box<dyn Future<Output = lapin::Result<Confirmation>> + Send>>;

/// A published chunk that is not answered.
struct Slot {
    since: Instant,
    confirming: Confirming,
    /// Its answer, once it is there; polled no more then.
    answered: Option<lapin::Result<Confirmation>>,
}

/// Publishes until it is stopped; yields until when to say good-bye.
async fn publish(
    link: &Link,
    config: &AmqpConfig,
    connected: &Connected,
) -> Result<Instant, Failure> {
    let lost = |error: lapin::Error| error::of_use("publish to", &error);
    let mut events = connected.connection.events_listener();
    let (exchange, routing_key) = config.names.target();
    let (exchange, routing_key) = (ShortString::from(exchange), ShortString::from(routing_key));
    let mut chunks = VecDeque::new();
    let mut window: VecDeque<Slot> = VecDeque::new();
    let mut answers = Vec::new();
    // While it is blocked nothing is confirmed, and that is no fault of the connection.
    let mut blocked = false;
    let mut unblocked_at = Instant::now();
    loop {
        if let Some(by) = link.take(&mut chunks) {
            return Ok(by);
        }
        for chunk in chunks.drain(..) {
            let channel = connected.channel.clone();
            let confirming = publish_one(channel, exchange.clone(), routing_key.clone(), chunk);
            window.push_back(Slot::start(Box::pin(confirming)).await);
        }
        // Whatever is answered already, in one go.
        while let Some(slot) = window.front_mut() {
            let Poll::Ready(result) = poll_fn(|cx| Poll::Ready(slot.poll(cx))).await else {
                break;
            };
            window.pop_front();
            // What was answered before a failure still counts.
            match result.map(answer) {
                Ok(answer) => answers.push(answer),
                Err(error) => {
                    link.answer(&mut answers);
                    return Err(lost(error));
                }
            }
        }
        if !answers.is_empty() {
            link.answer(&mut answers);
            link.tell();
            if let Some(time) = link.refused_too_long() {
                let message = format!("the broker refused everything for {time:?} (basic.nack)");
                return Err(Failure::retry("publish to", message));
            }
        }
        let oldest = window.front().map(|slot| slot.since.max(unblocked_at));
        let overdue = oldest.map(|since| since + config.confirm_timeout);
        tokio::select! {
            () = link.work.notified() => {}
            () = until_answered(&mut window) => {}
            event = next(&mut events) => match event {
                Some(Event::ConnectionBlocked(_)) => {
                    blocked = true;
                    link.set_blocked(true);
                }
                Some(Event::ConnectionUnblocked) => {
                    blocked = false;
                    unblocked_at = Instant::now();
                    link.set_blocked(false);
                }
                Some(Event::Error(error)) => return Err(lost(error)),
                Some(_) => {}
                None => return Err(Failure::retry("publish to", "the connection ended")),
            },
            () = at(overdue), if !blocked && overdue.is_some() => {
                let message = format!("nothing was confirmed for {:?}", config.confirm_timeout);
                return Err(Failure::retry("publish to", message));
            }
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

impl Slot {
    /// Polls once, which puts the frames in order behind those before; the rest is done when it
    /// is the oldest. Awaiting each would cost a round trip through the socket's thread each, five
    /// times the CPU.
    async fn start(mut confirming: Confirming) -> Self {
        // Answered at once is only what a dead channel refuses.
        let answered = match poll_fn(|cx| Poll::Ready(confirming.as_mut().poll(cx))).await {
            Poll::Pending => None,
            Poll::Ready(result) => Some(result),
        };
        Self {
            since: Instant::now(),
            confirming,
            answered,
        }
    }

    /// Yields its answer, once.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<lapin::Result<Confirmation>> {
        match self.answered.take() {
            Some(result) => Poll::Ready(result),
            None => self.confirming.as_mut().poll(cx),
        }
    }
}

/// Waits until the oldest chunk is answered and leaves the answer in its slot.
async fn until_answered(window: &mut VecDeque<Slot>) {
    let Some(slot) = window.front_mut() else {
        return std::future::pending().await;
    };
    let result = poll_fn(|cx| slot.poll(cx)).await;
    slot.answered = Some(result);
}

/// What an answer of the broker means. An unroutable message is returned first and confirmed then.
fn answer(confirmation: Confirmation) -> Answer {
    match confirmation {
        Confirmation::Ack(Some(returned)) | Confirmation::Nack(Some(returned)) => {
            Answer::Returned(format!("{} {}", returned.reply_code, returned.reply_text).into())
        }
        Confirmation::Ack(None) => Answer::Confirmed,
        // Without confirms nothing is known, which must never count as confirmed.
        Confirmation::Nack(None) | Confirmation::NotRequested => Answer::Nacked,
    }
}
