//! The thread that polls. So the group sees a living member, however slow the owner is.

use std::error::Error;
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

use baler_common::transport::Failure;
use rdkafka::client::{ClientContext, OAuthToken};
use rdkafka::consumer::{BaseConsumer, Consumer, ConsumerContext, Rebalance};
use rdkafka::error::{KafkaError, KafkaResult, RDKafkaErrorCode};
use rdkafka::message::{BorrowedMessage, Message};
use rdkafka::statistics::{Broker, Statistics};
use rdkafka::{Offset, TopicPartitionList};

use super::commit::{Skipped, commit_stored, wait_for_commits};
use super::state::{Arrived, Next, ReaderState};
use crate::client;
use crate::client::TokenSource;
use crate::error::{is_refusal, refusal};

/// How long one call of poll waits for a message. It spins for the last fraction of a millisecond.
const POLL: Duration = Duration::from_millis(500);

/// How long there is no room before partitions are paused. A pause discards the fetched messages,
/// so a short backlog of the owner causes none.
const PAUSE_AFTER: Duration = Duration::from_millis(250);

/// How often a paused consumer looks for rebalances.
const PAUSED_POLL_INTERVAL: Duration = Duration::from_millis(100);

/// How often a paused consumer asks for the ends of its partitions, and how long one request may
/// take.
const WATERMARK_INTERVAL: Duration = Duration::from_secs(2);
const WATERMARK_TIMEOUT: Duration = Duration::from_secs(1);

/// How often to ask whether skipped offsets were removed.
const SKIPPED_INTERVAL: Duration = Duration::from_secs(1);

/// The client's callbacks. All of them run on the thread that polls.
pub(super) struct Callbacks {
    pub(super) shared: Arc<ReaderState>,
    pub(super) revoke_timeout: Duration,
    /// Whether a group without a commit begins at the end of a partition.
    pub(super) from_the_end: bool,
    pub(super) topic: Box<str>,
    pub(super) tokens: TokenSource,
    /// The client of these callbacks, once it exists.
    pub(super) client: OnceLock<Weak<Client>>,
}

/// The consumer of this crate.
pub(super) type Client = BaseConsumer<Callbacks>;

impl ClientContext for Callbacks {
    const ENABLE_REFRESH_OAUTH_TOKEN: bool = true;

    fn generate_oauth_token(&self, _: Option<&str>) -> Result<OAuthToken, Box<dyn Error>> {
        self.tokens.next()
    }

    fn stats(&self, statistics: Statistics) {
        let brokers = || statistics.brokers.values();
        let again = |broker: &Broker| u64::try_from(broker.connects? - 1).ok();
        let mut state = self.shared.lock();
        state.stats.reconnects = brokers().filter_map(again).sum();
        state.stats.throttled += client::throttled(&statistics);
        let is_connected = brokers().any(|broker| broker.state == "UP");
        state.connected = Some(is_connected);
        if is_connected {
            state.unreached = None;
        }
        let Some(topic) = statistics.topics.get(&*self.topic) else {
            return;
        };
        for partition in topic.partitions.values().filter(|it| it.hi_offset >= 0) {
            // Without a commit the group begins at the start of the partition.
            let start = [partition.committed_offset, partition.lo_offset]
                .into_iter()
                .find(|offset| *offset >= 0);
            if let Some(lane) = state.lanes.get_mut(&partition.partition) {
                lane.update_watermarks(start, partition.hi_offset);
            }
        }
    }

    fn error(&self, error: KafkaError, reason: &str) {
        // Poll returns these errors too, except for alerts, but without the reason.
        if let Some(failure) = refusal(&error, reason) {
            self.shared.fail(failure);
            return;
        }
        match error.rdkafka_error_code() {
            // One broker is away. The next error says that all are, without the reason.
            Some(RDKafkaErrorCode::BrokerTransportFailure | RDKafkaErrorCode::Resolve) => {
                self.shared.lock().unreached = Some(reason.into());
            }
            Some(RDKafkaErrorCode::AllBrokersDown) => {
                let reason = self.shared.lock().unreached.clone();
                let reason = reason.unwrap_or_else(|| "no broker answers".into());
                self.shared.fail(Failure::retry("connect to", reason));
            }
            _ => {}
        }
    }
}

impl ConsumerContext for Callbacks {
    fn pre_rebalance(&self, client: &Client, rebalance: &Rebalance<'_>) {
        if let Rebalance::Assign(list) = rebalance {
            // A partition that leaves while it is paused is still paused when it comes back. Nobody
            // else would resume it. Other partitions stay as they are.
            report(&self.shared, client.resume(list));
        }
        if let Rebalance::Revoke(list) = rebalance {
            let partitions = partitions(list);
            if partitions.is_empty() {
                return;
            }
            // Lost partitions cannot be committed any more, so nobody needs to wait.
            let lost = client.assignment_lost();
            let time = if lost {
                Duration::ZERO
            } else {
                self.revoke_timeout
            };
            let by = Instant::now() + time;
            self.shared.revoked(&partitions, by);
            // A reader that leaves has committed already.
            if !lost && !self.shared.lock().left {
                self.commit(&partitions, by, || {});
            }
        }
    }

    fn post_rebalance(&self, client: &Client, rebalance: &Rebalance<'_>) {
        match rebalance {
            Rebalance::Assign(list) => {
                self.shared.assigned(&self.positions(client, list));
                if self.shared.lock().paused && list.count() > 0 {
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
            // The next commit includes these offsets.
            Err(error) => self.shared.fail_for_now(failure(&error)),
        }
    }
}

impl Callbacks {
    /// The partitions of an assignment, and the position that the group has committed for each: `None`
    /// if it has committed nothing. Asked for before the first chunk is settled, because this reader's
    /// own commits change it.
    fn positions(&self, client: &Client, list: &TopicPartitionList) -> Vec<(i32, Option<i64>)> {
        let committed = client.committed_offsets(list.clone(), WATERMARK_TIMEOUT);
        let committed = committed.unwrap_or_else(|error| {
            let message = format!(
                "the brokers do not say the group's position in {:?}: {error}; chunks that were \
                 removed before it are not noticed",
                partitions(list)
            );
            self.shared.fail(Failure::retry("read from", message));
            list.clone()
        });
        let position = |offset| match offset {
            Offset::Offset(offset) => Some(offset),
            _ => None,
        };
        let elements = committed.elements().into_iter();
        elements
            .map(|it| (it.partition(), position(it.offset())))
            .collect()
    }

    /// Commits the settled offsets of partitions that leave. See `commit_stored` for `meanwhile`.
    fn commit(&self, partitions: &[i32], by: Instant, meanwhile: impl Fn()) {
        // Without a broker this would only wait. The client itself commits later.
        if partitions.is_empty() || self.shared.lock().is_cut_off() {
            return;
        }
        let Some(client) = self.client.get().and_then(Weak::upgrade) else {
            return;
        };
        // A reader that ends has a deadline of its own.
        let by = || self.shared.lock().commit_by.unwrap_or(by);
        if let Err(error) = commit_stored(&client, by, meanwhile) {
            let message = format!(
                "{error}; what was settled of {partitions:?} since the last commit comes again"
            );
            self.shared
                .uncommitted(Failure::retry("commit to", message));
        }
    }
}

fn partitions(list: &TopicPartitionList) -> Vec<i32> {
    let elements = list.elements();
    elements.iter().map(|element| element.partition()).collect()
}

fn report(shared: &ReaderState, result: KafkaResult<()>) {
    if let Err(error) = result {
        shared.fail(failure(&error));
    }
}

fn failure(error: &KafkaError) -> Failure {
    let fatal = matches!(error, KafkaError::MessageConsumptionFatal(_));
    if fatal || error.rdkafka_error_code().is_some_and(is_refusal) {
        return Failure::last("read from", error.to_string());
    }
    Failure::retry("read from", error.to_string())
}

/// Polls until it must stop, then leaves the group.
pub(super) fn run(client: Arc<Client>, shared: &ReaderState) {
    let (mut asked, mut first) = (Instant::now(), 0);
    let mut skips_asked: Option<Instant> = None;
    loop {
        // Transactions skip offsets all the time.
        if skips_asked.is_none_or(|asked| asked.elapsed() >= SKIPPED_INTERVAL)
            && ask_for_removals(&client, shared)
        {
            skips_asked = Some(Instant::now());
        }
        match shared.next() {
            Next::Stop => break,
            Next::Fetch => {
                if shared.lock().paused {
                    set_paused(&client, shared, false);
                }
                take(&client, shared, POLL);
            }
            Next::Keep if shared.lock().paused => {
                if shared.wait_for_room(PAUSED_POLL_INTERVAL) == Next::Keep {
                    take(&client, shared, Duration::ZERO);
                    if asked.elapsed() >= WATERMARK_INTERVAL {
                        first = ask_for_ends(&client, shared, first);
                        asked = Instant::now();
                    }
                }
            }
            Next::Keep => {
                if shared.wait_for_room(PAUSE_AFTER) == Next::Keep {
                    set_paused(&client, shared, true);
                }
            }
        }
    }
    // The last commit comes before the client leaves. A group refuses commits during a rebalance,
    // and a rebalance ends only if all members poll. So this member polls, and fetches nothing.
    set_paused(&client, shared, true);
    if !client.assignment_lost() {
        let by = Instant::now() + client.context().revoke_timeout;
        let poll = || take(&client, shared, Duration::ZERO);
        client.context().commit(&owned(shared), by, poll);
    }
    shared.lock().left = true;
    wait_for_commits(&client);
    // This is the last reference: to drop it leaves the group.
    drop(client);
}

/// The partitions of this reader.
fn owned(shared: &ReaderState) -> Vec<i32> {
    shared.lock().lanes.keys().copied().collect()
}

/// Asks for the ends of the partitions. While they are paused the statistics have none, and the lag
/// grows. Begins with partition `first`, and returns the first partition of the next round.
fn ask_for_ends(client: &Client, shared: &ReaderState, first: i32) -> i32 {
    let topic = &client.context().topic;
    let partitions = owned(shared);
    let (before, from) = partitions.split_at(partitions.partition_point(|it| *it < first));
    for partition in from.iter().chain(before).copied() {
        // The broker is away or slow. The next round begins with the partition after this one.
        let Ok((start, end)) = client.fetch_watermarks(topic, partition, WATERMARK_TIMEOUT) else {
            return partition.saturating_add(1);
        };
        if let Some(lane) = shared.lock().lanes.get_mut(&partition) {
            // The settings decide where a group without a position begins.
            let start = if client.context().from_the_end {
                end
            } else {
                start
            };
            lane.update_watermarks(Some(start), end);
        }
    }
    first
}

/// Asks the brokers whether offsets that were skipped are removed: by limits of the topic, or because
/// it was made anew. Returns whether there was anything to ask.
fn ask_for_removals(client: &Client, shared: &ReaderState) -> bool {
    let skipped = shared.take_skipped();
    let topic = &client.context().topic;
    for (partition, Skipped { from, to }) in skipped.iter().copied() {
        match client.fetch_watermarks(topic, partition, WATERMARK_TIMEOUT) {
            Ok((first, _)) if first > from => {
                shared.removed(partition, from, first.min(to));
            }
            Ok(_) => {}
            Err(error) => shared.fail(Failure::retry(
                "read from",
                format!(
                    "partition {partition}: reading went from offset {from} to {to}, and the brokers \
                     do not say why: {error}"
                ),
            )),
        }
    }
    !skipped.is_empty()
}

fn set_paused(client: &Client, shared: &ReaderState, paused: bool) {
    shared.lock().paused = paused;
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

/// Waits for a message, and passes on all messages that are there, as long as there is room.
fn take(client: &Client, shared: &ReaderState, time: Duration) {
    let mut next = client.poll(time);
    while let Some(polled) = next {
        match polled {
            Ok(message) => pass_on(client, shared, &message),
            Err(error) => match error {
                KafkaError::PartitionEOF(partition) => {
                    if let Some(lane) = shared.lock().lanes.get_mut(&partition) {
                        lane.is_at_end = true;
                    }
                }
                // One of several brokers is away. Another error says when all are.
                KafkaError::MessageConsumption(
                    RDKafkaErrorCode::AllBrokersDown
                    | RDKafkaErrorCode::BrokerTransportFailure
                    | RDKafkaErrorCode::Resolve,
                ) => {}
                error => shared.fail(failure(&error)),
            },
        }
        if shared.next() != Next::Fetch {
            break;
        }
        next = client.poll(Duration::ZERO);
    }
    // One wake-up of the owner for all messages.
    shared.update(|_| ());
}

fn pass_on(client: &Client, shared: &ReaderState, message: &BorrowedMessage<'_>) {
    match Arrived::from_message(message) {
        Some(arrived) => shared.arrive(arrived),
        None => shared.damaged(
            message.partition(),
            message.offset(),
            |partition, offset| {
                let stored = client.store_offset(message.topic(), partition, offset);
                stored.is_ok()
            },
        ),
    }
}
