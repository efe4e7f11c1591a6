//! Messages on their way to the broker: published, and not answered.

use std::collections::VecDeque;
use std::future::{pending, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use lapin::options::BasicPublishOptions;
use lapin::types::ShortString;
use lapin::{BasicProperties, Channel, Confirmation as Answer};

use crate::config::AmqpConfig;

/// A publish and its confirmation.
type Confirming = Pin<Box<dyn Future<Output = lapin::Result<Answer>> + Send>>;

/// The messages that were published on a channel and are not answered, oldest first.
///
/// Its owner is the only one on the channel: two could swap delivery tags.
pub(crate) struct InFlight {
    /// Shared with each message: a clone of the client's channel counts up some twenty references.
    channel: Arc<Channel>,
    exchange: ShortString,
    /// One, or one for each lane.
    routing_keys: Vec<ShortString>,
    messages: VecDeque<Message>,
}

struct Message {
    since: Instant,
    confirming: Confirming,
    /// Its answer, if it came at once; `confirming` is not polled any more then.
    answer: Option<lapin::Result<Answer>>,
}

impl InFlight {
    /// Publishes to what the settings name, on a channel with publisher confirms.
    pub(crate) fn new(channel: Channel, config: &AmqpConfig) -> Self {
        let (exchange, routing_keys) = config.names.target();
        Self {
            channel: Arc::new(channel),
            exchange: exchange.into(),
            routing_keys: routing_keys.into_iter().map(ShortString::from).collect(),
            messages: VecDeque::new(),
        }
    }

    /// Publishes a message of a lane behind those before; never waits.
    ///
    /// The first poll puts its frames in order. To await each before the next costs five times the
    /// CPU.
    pub(crate) fn publish(
        &mut self,
        lane: u32,
        payload: impl AsRef<[u8]> + Send + 'static,
        properties: BasicProperties,
    ) {
        let channel = Arc::clone(&self.channel);
        let lane = usize::try_from(lane).unwrap_or(0) % self.routing_keys.len().max(1);
        let routing_key = self.routing_keys.get(lane).cloned().unwrap_or_default();
        let exchange = self.exchange.clone();
        let options = BasicPublishOptions {
            // Else a chunk that no queue takes would be confirmed and lost.
            mandatory: true,
            immediate: false,
        };
        let mut confirming: Confirming = Box::pin(async move {
            let payload = payload.as_ref();
            let publishing =
                channel.basic_publish(exchange, routing_key, options, payload, properties);
            publishing.await?.await
        });
        // Only the oldest message wakes anybody.
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

    /// Waits for the answer to the oldest message; for ever if there is none.
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
