//! The thread that polls, so that the group sees a living member however slow its owner is.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use rdkafka::TopicPartitionList;
use rdkafka::client::ClientContext;
use rdkafka::consumer::{BaseConsumer, Consumer, ConsumerContext, Rebalance};
use rdkafka::error::{KafkaError, KafkaResult, RDKafkaErrorCode};
use rdkafka::message::{BorrowedMessage, Message};

use super::shared::{Fetched, Next, Shared};
use crate::error::{Failure, code_of, is_refusal};
use crate::headers;

/// How long one call of poll lasts when nothing comes; it spins for its last fraction of a
/// millisecond.
const POLL: Duration = Duration::from_millis(500);

/// How long there is no room before partitions are paused. A pause discards what the client has
/// fetched, so it is not for the moments in which the owner is behind.
const BEFORE_PAUSE: Duration = Duration::from_millis(250);

/// How often a paused consumer looks for rebalances.
const WHILE_PAUSED: Duration = Duration::from_millis(100);

/// The client's callbacks, all of them on the thread that polls.
#[derive(Debug)]
pub(super) struct Callbacks {
    pub(super) shared: Arc<Shared>,
    pub(super) revoke_timeout: Duration,
}

/// What this crate calls a consumer.
pub(super) type Client = BaseConsumer<Callbacks>;

impl ClientContext for Callbacks {
    fn error(&self, _: KafkaError, _: &str) {
        // It is handed out by poll as well.
    }
}

impl ConsumerContext for Callbacks {
    fn pre_rebalance(&self, client: &Client, rebalance: &Rebalance<'_>) {
        if let Rebalance::Revoke(list) = rebalance {
            let partitions = partitions(list);
            if partitions.is_empty() {
                return;
            }
            // What was lost cannot be committed any more, so nobody needs to wait.
            let lost = client.assignment_lost();
            let time = if lost {
                Duration::ZERO
            } else {
                self.revoke_timeout
            };
            self.shared.revoked(&partitions, Instant::now() + time);
        }
    }

    fn post_rebalance(&self, client: &Client, rebalance: &Rebalance<'_>) {
        match rebalance {
            Rebalance::Assign(list) => {
                let partitions = partitions(list);
                if partitions.is_empty() {
                    return;
                }
                self.shared.assigned(&partitions);
                if self.shared.is_paused() {
                    report(&self.shared, client.pause(list));
                }
            }
            Rebalance::Revoke(_) => {}
            Rebalance::Error(error) => {
                let failure = Failure::retry("read from", error.to_string());
                self.shared.fail(failure);
            }
        }
    }

    fn commit_callback(&self, result: KafkaResult<()>, _: &TopicPartitionList) {
        match result {
            // Nothing was stored since the last commit.
            Err(KafkaError::ConsumerCommit(RDKafkaErrorCode::NoOffset)) | Ok(()) => {}
            // The next commit holds what this one did.
            Err(error) => report(&self.shared, Err(error)),
        }
    }
}

fn partitions(list: &TopicPartitionList) -> Vec<i32> {
    let elements = list.elements();
    elements.iter().map(|element| element.partition()).collect()
}

fn report(shared: &Shared, result: KafkaResult<()>) {
    if let Err(error) = result {
        shared.fail(failure(&error));
    }
}

fn failure(error: &KafkaError) -> Failure {
    let fatal = matches!(error, KafkaError::MessageConsumptionFatal(_));
    if fatal || code_of(error).is_some_and(is_refusal) {
        return Failure::last("read from", error.to_string());
    }
    Failure::retry("read from", error.to_string())
}

/// Polls until it is told to stop, then leaves the group.
pub(super) fn run(client: Arc<Client>, shared: &Shared) {
    loop {
        match shared.next() {
            Next::Stop => break,
            Next::Fetch => {
                if shared.is_paused() {
                    set_paused(&client, shared, false);
                }
                take(&client, shared, POLL);
            }
            Next::Keep if shared.is_paused() => {
                if shared.wait_for_room(WHILE_PAUSED) == Next::Keep {
                    take(&client, shared, Duration::ZERO);
                }
            }
            Next::Keep => {
                if shared.wait_for_room(BEFORE_PAUSE) == Next::Keep {
                    set_paused(&client, shared, true);
                }
            }
        }
    }
    // The last one to hold it: this commits what is stored and leaves the group.
    drop(client);
}

fn set_paused(client: &Client, shared: &Shared, paused: bool) {
    shared.set_paused(paused);
    let result = client.assignment().and_then(|list| {
        if list.count() == 0 {
            Ok(())
        } else if paused {
            client.pause(&list)
        } else {
            client.resume(&list)
        }
    });
    report(shared, result);
}

/// Waits for something, and passes it on.
fn take(client: &Client, shared: &Shared, time: Duration) {
    match client.poll(time) {
        None => {}
        Some(Ok(message)) => pass_on(client, shared, &message),
        Some(Err(error)) => match error {
            KafkaError::PartitionEOF(_) => {}
            // One broker of several is away; that all are is told apart.
            KafkaError::MessageConsumption(
                RDKafkaErrorCode::BrokerTransportFailure | RDKafkaErrorCode::Resolve,
            ) => {}
            error => shared.fail(failure(&error)),
        },
    }
}

fn pass_on(client: &Client, shared: &Shared, message: &BorrowedMessage<'_>) {
    let (partition, offset) = (message.partition(), message.offset());
    let Some(payload) = message.payload() else {
        let reason = "a message without a value, as compacted topics have";
        return shared.damaged(partition, offset, reason, |partition, offset| {
            let stored = client.store_offset(message.topic(), partition, offset);
            stored.is_ok()
        });
    };
    shared.fetched(Fetched {
        partition,
        offset,
        bytes: Bytes::copy_from_slice(payload),
        meta: message.headers().and_then(headers::read),
        redelivered: false,
    });
}
