//! Messages in flight: published and not answered.

use std::collections::VecDeque;
use std::future::{pending, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use baler_common::number::to_usize;
use lapin::options::BasicPublishOptions;
use lapin::types::ShortString;
use lapin::{BasicProperties, Channel, Confirmation as Answer};

use crate::config::AmqpConfig;

/// A publish and its confirmation.
type Confirming = Pin<Box<dyn Future<Output = lapin::Result<Answer>> + Send>>;

/// The messages that were published on a channel and are not answered, oldest first.
///
/// Nobody else may publish on the channel, or delivery tags could be swapped.
pub(crate) struct InFlight {
    /// Shared with each message. A clone of the client's channel would count about twenty references.
    channel: Arc<Channel>,
    exchange: ShortString,
    /// One for all lanes, or one for each lane.
    routing_keys: Vec<ShortString>,
    messages: VecDeque<Message>,
}

struct Message {
    since: Instant,
    confirming: Confirming,
    /// The answer, if it came at once. Then nobody polls `confirming` again.
    answer: Option<lapin::Result<Answer>>,
}

impl InFlight {
    /// Publishes to the configured queue or exchange, on a channel with publisher confirms.
    pub(crate) fn new(channel: Channel, config: &AmqpConfig) -> Self {
        let (exchange, routing_keys) = config.names.target();
        Self {
            channel: Arc::new(channel),
            exchange: exchange.into(),
            routing_keys: routing_keys.into_iter().map(ShortString::from).collect(),
            messages: VecDeque::new(),
        }
    }

    /// Publishes a message of a lane after the earlier ones. It never waits.
    ///
    /// The first poll puts the message's frames in order. To await each message before the next costs
    /// five times the CPU.
    pub(crate) fn publish(
        &mut self,
        lane: u32,
        payload: impl AsRef<[u8]> + Send + 'static,
        properties: BasicProperties,
    ) {
        let channel = Arc::clone(&self.channel);
        let lane = to_usize(lane) % self.routing_keys.len().max(1);
        let routing_key = self.routing_keys.get(lane).cloned().unwrap_or_default();
        let exchange = self.exchange.clone();
        let options = BasicPublishOptions {
            // Otherwise a chunk that no queue takes would be confirmed and lost.
            mandatory: true,
            immediate: false,
        };
        let mut confirming: Confirming = Box::pin(async move {
            let payload = payload.as_ref();
            let publishing =
                channel.basic_publish(exchange, routing_key, options, payload, properties);
            publishing.await?.await
        });
        // Only the oldest message needs a waker.
        let mut nobody = Context::from_waker(Waker::noop());
        let answer = match confirming.as_mut().poll(&mut nobody) {
            Poll::Ready(answer) => Some(answer),
            Poll::Pending => None,
        };
        self.messages.push_back(Message {
            since: Instant::now(),
            confirming,
            answer,
        });
    }

    /// Waits for the answer to the oldest message. Without messages it waits for ever.
    pub(crate) async fn next_answer(&mut self) -> lapin::Result<Answer> {
        if self.messages.is_empty() {
            return pending().await;
        }
        poll_fn(|context| match self.poll_oldest(context) {
            Some(answer) => Poll::Ready(answer),
            None => Poll::Pending,
        })
        .await
    }

    /// The answer to the oldest message, if it is there.
    pub(crate) fn answer(&mut self) -> Option<lapin::Result<Answer>> {
        self.poll_oldest(&mut Context::from_waker(Waker::noop()))
    }

    fn poll_oldest(&mut self, context: &mut Context<'_>) -> Option<lapin::Result<Answer>> {
        let oldest = self.messages.front_mut()?;
        let answer = match oldest.answer.take() {
            Some(answer) => answer,
            None => match oldest.confirming.as_mut().poll(context) {
                Poll::Ready(answer) => answer,
                Poll::Pending => return None,
            },
        };
        self.messages.pop_front();
        Some(answer)
    }

    /// When the oldest message was published.
    pub(crate) fn oldest(&self) -> Option<Instant> {
        self.messages.front().map(|message| message.since)
    }

    /// How many messages are not answered.
    pub(crate) fn len(&self) -> usize {
        self.messages.len()
    }
}
