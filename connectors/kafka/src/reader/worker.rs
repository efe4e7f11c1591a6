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
use rdkafka::topic_partition_list::TopicPartitionListElem;
use rdkafka::{Offset, TopicPartitionList};

use super::commit::{commit_once, commit_stored, wait_for_commits};
use super::lane::{Commit, Position, Reset};
use super::last_chunks::LastChunks;
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

/// How often to ask whether skipped offsets were removed, and to set the group's position back.
const SKIPPED_INTERVAL: Duration = Duration::from_secs(1);

/// The client's callbacks. All of them run on the thread that polls.
pub(super) struct Callbacks {
    pub(super) shared: Arc<ReaderState>,
    pub(super) revoke_timeout: Duration,
    /// Where a group without a position begins.
    pub(super) reset: Reset,
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
        state.stats.throttled += Duration::from_millis(client::throttled_ms(&statistics));
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
                self.shared.assigned(self.positions(client, list));
                // Before the first chunk, which may be the last that the owner wants.
                ask_for_removals(client, &self.shared);
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

    fn commit_callback(&self, result: KafkaResult<()>, offsets: &TopicPartitionList) {
        let elements = offsets.elements();
        let of_partitions = elements.iter().map(TopicPartitionListElem::error);
        let refuses = |result: KafkaResult<()>| result.is_err_and(|error| refuses_text(&error));
        if of_partitions.chain([result.clone()]).any(refuses) {
            if let Some(client) = self.client.get().and_then(Weak::upgrade) {
                store_without_text(&client);
            }
            return;
        }
        match result {
            Ok(()) => {
                let accepted = elements.iter().filter(|it| it.error().is_ok());
                let positions = accepted.filter_map(|it| Some((it.partition(), offset_of(it)?)));
                self.shared.lock().committed.extend(positions);
            }
            // Nothing was stored since the last commit.
            Err(KafkaError::ConsumerCommit(RDKafkaErrorCode::NoOffset)) => {}
            // The next commit includes these offsets.
            Err(error) => self.shared.fail_for_now(failure(&error)),
        }
    }
}

impl Callbacks {
    /// The partitions of an assignment, and the position that the group has committed for each. Asked
    /// for before the first chunk is settled, because this reader's own commits change it.
    fn positions(&self, client: &Client, list: &TopicPartitionList) -> Vec<Position> {
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
        let position = |element: TopicPartitionListElem<'_>| Position {
            partition: element.partition(),
            offset: offset_of(&element),
            // The protocol's strings are UTF-8, and the crate panics for others.
            last: Failure::catching("read from", || LastChunks::parse(element.metadata()))
                .unwrap_or_else(|failure| {
                    self.shared.fail(failure);
                    LastChunks::default()
                }),
        };
        committed.elements().into_iter().map(position).collect()
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
        let mut committed = commit_stored(&client, by, &meanwhile);
        if committed.as_ref().is_err_and(refuses_text) {
            store_without_text(&client);
            committed = commit_stored(&client, by, &meanwhile);
        }
        if let Err(error) = committed {
            let message = format!(
                "{error}; what was settled of {partitions:?} since the last commit comes again"
            );
            self.shared
                .uncommitted(Failure::retry("commit to", message));
        }
    }
}

fn offset_of(element: &TopicPartitionListElem<'_>) -> Option<i64> {
    match element.offset() {
        Offset::Offset(offset) => Some(offset),
        _ => None,
    }
}

/// Gives the client positions to commit. It fails if this reader has lost a partition.
pub(super) fn store(client: &Client, commits: &[Commit]) -> bool {
    let list = list(&client.context().topic, commits);
    list.is_ok_and(|list| client.store_offsets(&list).is_ok())
}

fn list(topic: &str, commits: &[Commit]) -> KafkaResult<TopicPartitionList> {
    let mut list = TopicPartitionList::with_capacity(commits.len());
    for commit in commits {
        let mut element = list.add_partition(topic, commit.partition);
        element.set_offset(Offset::Offset(commit.offset))?;
        if !commit.text.is_empty() {
            element.set_metadata(&commit.text);
        }
    }
    Ok(list)
}

/// Whether brokers keep no text of this length beside an offset (`offset.metadata.max.bytes`).
fn refuses_text(error: &KafkaError) -> bool {
    error.rdkafka_error_code() == Some(RDKafkaErrorCode::OffsetMetadataTooLarge)
}

/// Leaves out the text from now on, also of the positions that are not committed yet. Without it the
/// next reader does not know the last chunk of each lane.
fn store_without_text(client: &Client) {
    // Positions of partitions that this reader has lost need no commit.
    store(client, &client.context().shared.refuse_text());
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
            && (ask_for_removals(&client, shared) | set_back(&client, shared))
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
        set_back(&client, shared);
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
            // After the highest number it begins with the lowest.
            return partition.wrapping_add(1);
        };
        if let Some(lane) = shared.lock().lanes.get_mut(&partition) {
            // The settings decide where a group without a position begins.
            let start = client.context().reset.position((start, end));
            lane.update_watermarks(start, end);
        }
    }
    first
}

/// Asks the brokers whether offsets that were skipped are removed: by limits of the topic, or because
/// it was made anew. Returns whether there was anything to ask.
fn ask_for_removals(client: &Client, shared: &ReaderState) -> bool {
    let skipped = shared.take_skipped();
    let Callbacks { topic, reset, .. } = &**client.context();
    let mut answers = true;
    for (partition, skipped) in skipped.iter().copied() {
        if !answers {
            shared.put_back(partition, skipped);
            continue;
        }
        match client.fetch_watermarks(topic, partition, WATERMARK_TIMEOUT) {
            Ok(ends) => shared.explain(partition, skipped, ends, *reset),
            Err(error) => {
                answers = false;
                shared.put_back(partition, skipped);
                shared.fail(Failure::retry(
                    "read from",
                    format!(
                        "partition {partition}: the brokers do not say whether they have offset {}, \
                         which was to be next: {error}",
                        skipped.from
                    ),
                ));
            }
        }
    }
    !skipped.is_empty()
}

/// Sets the group back to where reading goes on. The client itself commits no offset below the
/// group's position, so all would be read again by the next reader. Returns whether there was
/// anything to do.
fn set_back(client: &Arc<Client>, shared: &ReaderState) -> bool {
    let lower = shared.take_lower();
    if lower.is_empty() {
        return false;
    }
    let by = Instant::now() + WATERMARK_TIMEOUT;
    let committed = list(&client.context().topic, &lower)
        .and_then(|list| commit_once(client, Some(list), || by, || ()));
    if let Err(error) = committed {
        if refuses_text(&error) {
            store_without_text(client);
        }
        lower
            .iter()
            .for_each(|commit| shared.put_back_lower(commit));
        shared.fail_for_now(failure(&error));
    }
    true
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
            Err(KafkaError::PartitionEOF(partition)) => {
                if let Some(lane) = shared.lock().lanes.get_mut(&partition) {
                    lane.is_at_end = true;
                }
            }
            // One of several brokers is away. Another error says when all are.
            Err(KafkaError::MessageConsumption(
                RDKafkaErrorCode::AllBrokersDown
                | RDKafkaErrorCode::BrokerTransportFailure
                | RDKafkaErrorCode::Resolve,
            )) => {}
            Err(error) => shared.fail(failure(&error)),
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
        None => shared.damaged(message.partition(), message.offset(), |commit| {
            store(client, &[commit])
        }),
    }
}
