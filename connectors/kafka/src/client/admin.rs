//! What the cluster is asked and told beside chunks: the topic's settings, and that there be a topic.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use baler_common::transport::Failure;
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, ResourceSpecifier, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::config::FromClientConfig;
use rdkafka::error::{KafkaResult, RDKafkaErrorCode};

use crate::config::KafkaConfig;
use crate::config::NewTopicShape;
use crate::error::{ErrorClass, error_class};

/// How long the cluster may take to say what its limits are; without them the settings count.
const QUESTION: Duration = Duration::from_secs(2);

/// What the cluster says of a topic's settings.
#[derive(Debug, Clone, Default)]
pub(crate) struct TopicSettings {
    /// `max.message.bytes`, which is the broker's `message.max.bytes` unless it was set for the
    /// topic.
    pub(crate) max_message_bytes: Option<u32>,
    /// `cleanup.policy`.
    pub(crate) cleanup_policy: Option<String>,
}

/// A client that administers.
pub(crate) struct Admin {
    client: AdminClient<DefaultClientContext>,
}

impl Admin {
    /// A client of its own: librdkafka answers such questions by another queue.
    pub(crate) fn start(config: &KafkaConfig) -> Result<Self, Failure> {
        let settings = config.administrator()?;
        let client = AdminClient::from_config(&settings)
            .map_err(|error| Failure::last("open", error.to_string()))?;
        Ok(Self { client })
    }

    /// The topic's settings; nothing if the cluster does not say them: it is old, is busy, or does
    /// not allow the question.
    pub(crate) fn settings(&self, topic: &str, by: Instant) -> Option<TopicSettings> {
        let options = options(by.min(Instant::now() + QUESTION));
        let resource = [ResourceSpecifier::Topic(topic)];
        let described = wait(self.client.describe_configs(&resource, &options), by)?;
        let resource = described.ok()?.into_iter().next()?.ok()?;
        let value = |name| resource.get(name)?.value.clone();
        Some(TopicSettings {
            max_message_bytes: value("max.message.bytes").and_then(|bytes| bytes.parse().ok()),
            cleanup_policy: value("cleanup.policy"),
        })
    }

    /// Creates a topic. One that exists is left as it is.
    pub(crate) fn create(
        &self,
        topic: &str,
        shape: NewTopicShape,
        by: Instant,
    ) -> Result<(), Failure> {
        let replication = TopicReplication::Fixed(i32::from(shape.replication.get()));
        let new = NewTopic::new(topic, i32::from(shape.partitions.get()), replication);
        let created = wait(self.client.create_topics([&new], &options(by)), by);
        let late = || Failure::retry("create", "no broker answered in time");
        let result = created.ok_or_else(late)?;
        let result = result.map_err(|error| Failure::retry("create", error.to_string()))?;
        match result.into_iter().next() {
            None | Some(Ok(_)) | Some(Err((_, RDKafkaErrorCode::TopicAlreadyExists))) => Ok(()),
            Some(Err((_, code))) => Err(refused(code)),
        }
    }
}

fn refused(code: RDKafkaErrorCode) -> Failure {
    use RDKafkaErrorCode as Code;
    let impossible = matches!(
        code,
        Code::InvalidConfig | Code::InvalidPartitions | Code::PolicyViolation
    );
    // Too few brokers may be a matter of time: they are on their way up.
    if impossible || error_class(code) == ErrorClass::Permanent {
        Failure::last("create", code.to_string())
    } else {
        Failure::retry("create", code.to_string())
    }
}

fn options(by: Instant) -> AdminOptions {
    // librdkafka takes no less than a millisecond.
    let left = by.saturating_duration_since(Instant::now());
    let left = Some(left.max(Duration::from_millis(1)));
    AdminOptions::new()
        .request_timeout(left)
        .operation_timeout(left)
}

/// Wakes a thread.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Waits for an answer, a little longer than the client itself does.
fn wait<T>(answer: impl Future<Output = KafkaResult<T>>, by: Instant) -> Option<KafkaResult<T>> {
    let by = by + Duration::from_millis(200);
    let mut answer = pin!(answer);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        if let Poll::Ready(answer) = answer.as_mut().poll(&mut context) {
            return Some(answer);
        }
        let left = by.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return None;
        }
        thread::park_timeout(left);
    }
}
