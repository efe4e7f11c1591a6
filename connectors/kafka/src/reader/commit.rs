//! Commits during a rebalance, and the last commit before partitions leave.

use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use rdkafka::TopicPartitionList;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer as _, ConsumerContext};
use rdkafka::error::{KafkaError, KafkaResult, RDKafkaErrorCode};

use crate::client::time_left;

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
pub(super) fn commit_stored<C: ConsumerContext + 'static>(
    client: &Arc<BaseConsumer<C>>,
    by: impl Fn() -> Instant,
    meanwhile: impl Fn(),
) -> KafkaResult<()> {
    loop {
        let Err(error) = commit_once(client, None, &by, &meanwhile) else {
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
fn is_rejoining<C: ConsumerContext>(client: &BaseConsumer<C>, code: RDKafkaErrorCode) -> bool {
    code == RDKafkaErrorCode::IllegalGeneration && !client.assignment_lost()
}

/// Commits these offsets, or the stored ones, in a separate thread. librdkafka takes no deadline: it
/// waits for a coordinator as long as the session lasts. A commit that is given up may still succeed
/// in that time, while no other reader has the partitions.
pub(super) fn commit_once<C: ConsumerContext + 'static>(
    client: &Arc<BaseConsumer<C>>,
    offsets: Option<TopicPartitionList>,
    by: impl Fn() -> Instant,
    meanwhile: impl Fn(),
) -> KafkaResult<()> {
    let failed = |code| Err(KafkaError::ConsumerCommit(code));
    let (told, answer) = channel();
    let client = Arc::clone(client);
    let thread = thread::Builder::new().name("baler-kafka-commit".into());
    let started = thread.spawn(move || {
        let result = match offsets {
            Some(offsets) => client.commit(&offsets, CommitMode::Sync),
            None => client.commit_consumer_state(CommitMode::Sync),
        };
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
        let left = time_left(by());
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
pub(super) fn wait_for_commits<T>(client: &Arc<T>) {
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
