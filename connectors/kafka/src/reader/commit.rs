//! How far a partition was settled, and the last commit before it leaves.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use rdkafka::consumer::{CommitMode, Consumer};
use rdkafka::error::{KafkaError, KafkaResult, RDKafkaErrorCode};

use super::worker::Client;

/// How long a commit that was refused rests before it is tried again.
const RETRY_PAUSE: Duration = Duration::from_millis(50);

/// How long a reader that leaves waits for an answer that it gave up.
const ABANDONED_TIMEOUT: Duration = Duration::from_secs(1);

/// How often it is asked how long an answer is still waited for.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);

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
                    && Instant::now() + RETRY_PAUSE < by() =>
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

/// Waits a moment for a commit that was given up, which holds the client as well: whoever drops it
/// last leaves the group.
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
            | Code::WaitingForCoordinator
    )
}

/// The offsets of a partition that were fetched, and how far they were settled.
#[derive(Debug, Default)]
pub(super) struct Lane {
    /// Every offset from the watermark on, and whether it is settled.
    pending: BTreeMap<i64, bool>,
    /// The offset behind the last one that was fetched.
    next: Option<i64>,
    /// Where the group stood before anything was fetched, as was last said.
    start: Option<i64>,
    /// The offset behind the last one of the partition, as the brokers last said.
    end: Option<i64>,
    /// Whether the last fetch found nothing more.
    pub(super) is_at_end: bool,
}

impl Lane {
    /// An offset came; whether it is new.
    pub(super) fn arrive(&mut self, offset: i64) -> bool {
        self.is_at_end = false;
        let new = !self.pending.contains_key(&offset);
        if new {
            self.pending.insert(offset, false);
            self.next = self.next.max(offset.checked_add(1));
        }
        new
    }

    /// What brokers say of the partition. `start`: where the group stands, if nothing was fetched;
    /// the last one counts, since the client may first tell what it knew of an earlier assignment.
    pub(super) fn update_watermarks(&mut self, start: Option<i64>, end: i64) {
        self.start = start.or(self.start);
        self.end = self.end.max(Some(end));
    }

    /// Whether nothing was fetched and nobody said where the group stands.
    pub(super) fn lacks_start(&self) -> bool {
        self.next.or(self.start).is_none()
    }

    /// How many offsets of the partition are not settled, as far as brokers said.
    pub(super) fn lag(&self) -> Option<u64> {
        let first = self.pending.first_key_value().map(|(offset, _)| *offset);
        let watermark = first.or(self.next).or(self.start)?;
        // What was fetched since the brokers spoke is there as well.
        let end = self.end?.max(self.next.unwrap_or(watermark));
        u64::try_from(end.saturating_sub(watermark)).ok()
    }

    /// An offset is settled; yields the last one of the contiguous settled ones when the watermark
    /// moves.
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

    /// How many offsets wait behind the watermark.
    pub(super) fn len(&self) -> usize {
        self.pending.len()
    }
}
