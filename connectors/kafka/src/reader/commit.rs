//! The last commit before partitions leave.

use std::thread;
use std::time::{Duration, Instant};

use rdkafka::consumer::{CommitMode, Consumer};
use rdkafka::error::{KafkaResult, RDKafkaErrorCode};

use super::worker::Client;
use crate::error::code_of;

/// How long a commit that was refused rests before it is tried again.
const BETWEEN: Duration = Duration::from_millis(50);

/// Commits what is stored, and tries again until `by` says so while the group is between two
/// assignments. `by` is asked each time, since a reader may be told to close meanwhile.
///
/// Brokers refuse commits from the moment at which all members have joined until their leader has
/// dealt the partitions (`REBALANCE_IN_PROGRESS`). librdkafka commits once when partitions leave or
/// the reader closes, and does not try again; what was refused would come twice.
pub(super) fn commit_stored(client: &Client, by: impl Fn() -> Instant) -> KafkaResult<()> {
    loop {
        let Err(error) = client.commit_consumer_state(CommitMode::Sync) else {
            return Ok(());
        };
        match code_of(&error) {
            // Everything stored is committed.
            Some(RDKafkaErrorCode::NoOffset) => return Ok(()),
            Some(code) if passes(code) && Instant::now() + BETWEEN < by() => rest(),
            _ => return Err(error),
        }
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
