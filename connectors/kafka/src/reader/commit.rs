//! How far a partition is settled, and the last commit before it leaves.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use rdkafka::consumer::{CommitMode, Consumer};
use rdkafka::error::{KafkaError, KafkaResult, RDKafkaErrorCode};

use super::worker::Client;

/// The pause before a refused commit is tried again.
const RETRY_PAUSE: Duration = Duration::from_millis(50);

/// How long a reader that leaves waits for a commit that it has given up.
const ABANDONED_TIMEOUT: Duration = Duration::from_secs(1);

/// How often the deadline of a commit is asked for.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// Commits the stored offsets. During a rebalance it tries again until `by`, and calls `meanwhile`
/// repeatedly. It asks `by` each time, since the owner may close the reader meanwhile.
///
/// Brokers refuse commits between the time when all members have joined and the new assignment. They
/// answer `REBALANCE_IN_PROGRESS`, or `ILLEGAL_GENERATION` to a member that does not know of the
/// rebalance yet, or `STALE_MEMBER_EPOCH` by the group protocol of KIP-848. librdkafka commits once
/// when partitions leave or the reader closes. Without another attempt the chunks of a refused commit
/// would come twice.
pub(super) fn commit_stored(
    client: &Arc<Client>,
    by: impl Fn() -> Instant,
    meanwhile: impl Fn(),
) -> KafkaResult<()> {
    loop {
        let Err(error) = commit_once(client, &by, &meanwhile) else {
            return Ok(());
        };
        match error.rdkafka_error_code() {
            // All stored offsets are committed.
            Some(RDKafkaErrorCode::NoOffset) => return Ok(()),
            Some(code)
                if (passes(code) || is_rejoining(client, code))
                    && Instant::now() + RETRY_PAUSE < by() =>
            {
                rest();
                meanwhile();
            }
            _ => return Err(error),
        }
    }
}

/// Whether the group has begun its next generation and the client does not know its number yet. It
/// keeps its partitions, and its next commit has that number.
///
/// A client that was removed from the group gets the same answer, but has lost its partitions.
/// Kafka's own client makes the same distinction (`ConsumerCoordinator`, `generationUnchanged`).
fn is_rejoining(client: &Client, code: RDKafkaErrorCode) -> bool {
    code == RDKafkaErrorCode::IllegalGeneration && !client.assignment_lost()
}

/// Commits in a separate thread. librdkafka takes no deadline: it waits for a coordinator as long as
/// the session lasts. A commit that is given up may still succeed in that time, while no other
/// reader has the partitions.
fn commit_once(
    client: &Arc<Client>,
    by: impl Fn() -> Instant,
    meanwhile: impl Fn(),
) -> KafkaResult<()> {
    let failed = |code| Err(KafkaError::ConsumerCommit(code));
    let (told, answer) = channel();
    let client = Arc::clone(client);
    let thread = thread::Builder::new().name("baler-kafka-commit".into());
    let started = thread.spawn(move || {
        let result = client.commit_consumer_state(CommitMode::Sync);
        // Before the answer: to drop the last reference leaves the group, and that is a task of the
        // polling thread, unless it has given up this commit.
        drop(client);
        // The polling thread may have given up.
        told.send(result).ok();
    });
    if started.is_err() {
        return failed(RDKafkaErrorCode::CriticalSystemResource);
    }
    loop {
        let left = by().saturating_duration_since(Instant::now());
        match answer.recv_timeout(left.min(CHECK_INTERVAL)) {
            Ok(result) => return result,
            Err(RecvTimeoutError::Disconnected) => return failed(RDKafkaErrorCode::Fail),
            Err(RecvTimeoutError::Timeout) if left.is_zero() => {
                return failed(RDKafkaErrorCode::OperationTimedOut);
            }
            Err(RecvTimeoutError::Timeout) => meanwhile(),
        }
    }
}

/// Waits shortly for a commit that was given up. Its thread holds the client too, and to drop the
/// last reference leaves the group.
pub(super) fn wait_for_commits(client: &Arc<Client>) {
    let by = Instant::now() + ABANDONED_TIMEOUT;
    while Arc::strong_count(client) > 1 && Instant::now() < by {
        rest();
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a group does not say when it takes commits again, and nobody waits longer for it"
)]
fn rest() {
    thread::sleep(RETRY_PAUSE);
}

/// Whether the group may take the same commit a moment later.
fn passes(code: RDKafkaErrorCode) -> bool {
    use RDKafkaErrorCode as Code;
    matches!(
        code,
        Code::BrokerTransportFailure
            | Code::CoordinatorLoadInProgress
            | Code::CoordinatorNotAvailable
            | Code::NotCoordinator
            | Code::RebalanceInProgress
            | Code::RequestTimedOut
            | Code::StaleMemberEpoch
            | Code::WaitingForCoordinator
    )
}

/// The offsets of a partition that were fetched, and how far they were settled.
#[derive(Debug, Default)]
pub(super) struct Lane {
    /// Every fetched offset from the watermark on, and whether it is settled.
    pending: BTreeMap<i64, bool>,
    /// The offset after the last one that was fetched. Before the first one, the position that the
    /// group has committed, if the brokers said it.
    next: Option<i64>,
    /// Where reading begins if the group has committed nothing, as the client last said.
    start: Option<i64>,
    /// The offset after the last one of the partition, as the brokers last said.
    end: Option<i64>,
    /// Whether the last fetch found nothing more.
    pub(super) is_at_end: bool,
    /// Offsets that were skipped, until the brokers say whether they were removed.
    pub(super) skipped: Option<Skipped>,
}

/// Offsets between two fetched ones, or between the group's position and the first one. Transactions
/// and compaction leave such gaps, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Skipped {
    pub(super) from: i64,
    /// The offset after the last one.
    pub(super) to: i64,
}

/// How a fetched offset fits to the ones before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arrival {
    /// It is below them, or below the group's position, although the reader did not go back: the topic
    /// was made anew, or a broker has lost its end.
    Below {
        /// The offset that was to be next.
        expected: i64,
    },
    /// It was fetched before and is not settled.
    Known,
    New,
}

impl Lane {
    /// Begins with the position that the group has committed, if it has one.
    pub(super) fn at(position: Option<i64>) -> Self {
        Self {
            next: position,
            ..Self::default()
        }
    }

    /// Notes a fetched offset.
    pub(super) fn arrive(&mut self, offset: i64) -> Arrival {
        self.is_at_end = false;
        if self.pending.contains_key(&offset) {
            return Arrival::Known;
        }
        let arrival = match self.next {
            Some(expected) if offset < expected => {
                *self = Self::default();
                Arrival::Below { expected }
            }
            Some(expected) if expected < offset => {
                // The first offset of several gaps counts.
                let from = self.skipped.map_or(expected, |skipped| skipped.from);
                self.skipped = Some(Skipped { from, to: offset });
                Arrival::New
            }
            _ => Arrival::New,
        };
        self.pending.insert(offset, false);
        self.next = offset.checked_add(1);
        arrival
    }

    /// Notes the ends of the partition. `start` is where reading begins without a commit. The last one
    /// counts: the first one may come from an earlier assignment.
    pub(super) fn update_watermarks(&mut self, start: Option<i64>, end: i64) {
        self.start = start.or(self.start);
        self.end = self.end.max(Some(end));
    }

    /// How many offsets of the partition are not settled, as far as the brokers say.
    pub(super) fn lag(&self) -> Option<u64> {
        let first = self.pending.first_key_value().map(|(offset, _)| *offset);
        let watermark = first.or(self.next).or(self.start)?;
        // Fetched messages may be newer than the brokers' answer.
        let end = self.end?.max(self.next.unwrap_or(watermark));
        u64::try_from(end.saturating_sub(watermark)).ok()
    }

    /// Settles an offset. If the watermark moves, returns the last offset before it.
    pub(super) fn settled(&mut self, offset: i64) -> Option<i64> {
        if let Some(settled) = self.pending.get_mut(&offset) {
            *settled = true;
        }
        let mut last = None;
        while let Some(first) = self.pending.first_entry().filter(|first| *first.get()) {
            last = Some(first.remove_entry().0);
        }
        last
    }

    /// How many fetched offsets follow the watermark.
    pub(super) fn len(&self) -> usize {
        self.pending.len()
    }
}
