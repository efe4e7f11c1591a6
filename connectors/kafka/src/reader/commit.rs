//! The last commit before partitions leave.

use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use rdkafka::consumer::{CommitMode, Consumer};
use rdkafka::error::{KafkaError, KafkaResult, RDKafkaErrorCode};

use super::worker::Client;

/// How long a commit that was refused rests before it is tried again.
const BETWEEN: Duration = Duration::from_millis(50);

/// How long a reader that leaves waits for an answer that it gave up.
const GIVEN_UP: Duration = Duration::from_secs(1);

/// How often it is asked how long an answer is still waited for.
const LOOK: Duration = Duration::from_millis(100);

/// Commits what is stored, and tries again until `by` says so while the group is between two
/// assignments. `by` is asked each time, since a reader may be told to close meanwhile; `meanwhile` is
/// called again and again until then.
///
/// Brokers refuse commits from the moment at which all members have joined until their leader has
/// dealt the partitions (`REBALANCE_IN_PROGRESS`, or `ILLEGAL_GENERATION` to a member that has not
/// heard of it yet). librdkafka commits once when partitions leave or
/// the reader closes, and does not try again; what was refused would come twice.
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
            // Everything stored is committed.
            Some(RDKafkaErrorCode::NoOffset) => return Ok(()),
            Some(code)
                if (passes(code) || is_rejoining(client, code))
                    && Instant::now() + BETWEEN < by() =>
            {
                rest();
                meanwhile();
            }
            _ => return Err(error),
        }
    }
}

/// Whether the group has begun its next generation, and the client has yet to be told its number: it
/// keeps its partitions meanwhile, and commits with that number next. A client that was thrown out
/// gets the same answer, and has lost its partitions. Kafka's own client tells the two apart likewise
/// (`ConsumerCoordinator`, `generationUnchanged`).
fn is_rejoining(client: &Client, code: RDKafkaErrorCode) -> bool {
    code == RDKafkaErrorCode::IllegalGeneration && !client.assignment_lost()
}

/// Commits in a thread of its own: without a coordinator librdkafka waits for one for as long as the
/// session lasts, and takes no deadline. What is given up may still be committed by then, while
/// nobody else has the partitions.
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
        // Before it is told: whoever drops the client last leaves the group, and that is the thread
        // that polls, unless this one was given up.
        drop(client);
        // Nobody may listen any more.
        told.send(result).ok();
    });
    if started.is_err() {
        return failed(RDKafkaErrorCode::CriticalSystemResource);
    }
    loop {
        let left = by().saturating_duration_since(Instant::now());
        match answer.recv_timeout(left.min(LOOK)) {
            Ok(result) => return result,
            Err(RecvTimeoutError::Disconnected) => return failed(RDKafkaErrorCode::Fail),
            Err(RecvTimeoutError::Timeout) if left.is_zero() => {
                return failed(RDKafkaErrorCode::OperationTimedOut);
            }
            Err(RecvTimeoutError::Timeout) => meanwhile(),
        }
    }
}

/// Waits a moment for a commit that was given up, which holds the client as well: whoever drops it
/// last leaves the group.
pub(super) fn wait_for_commits(client: &Arc<Client>) {
    let by = Instant::now() + GIVEN_UP;
    while Arc::strong_count(client) > 1 && Instant::now() < by {
        rest();
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a group does not say when it takes commits again, and nobody waits longer for it"
)]
fn rest() {
    thread::sleep(BETWEEN);
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
            | Code::WaitingForCoordinator
    )
}
