//! Records on their way, where the medium forgets what nobody has read: a load that waits.
//!
//! The writing process knows what it emitted, the reading ones what arrived, and the measuring one
//! hears of both. The writer asks it when much is on its way, and is answered when more has arrived;
//! a load that the readers keep up with asks seldom and never waits.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::case::{Case, records_of};
use super::payload::{Payloads, bytes_of_row, whole};
use crate::failure::Failure;
use crate::statistics::to_f64;

/// What a message has beside its payload, at most: Kafka's head of a batch and of a record, ...
const FRAME: f64 = 80.0;

/// ... and what says whose a chunk is.
const CHUNK_FRAME: f64 = 256.0;

/// So many records of a case may be on their way where a partition forgets what is beyond so many
/// bytes.
///
/// It is half of one partition, however many there are: readers get on unevenly, and in the end all
/// that is on its way may be in the partition of the slowest. But it is at least a chunk: of a smaller
/// number none would ever be full.
pub(super) fn most_on_their_way(
    case: &Case,
    retained_bytes: u64,
    seed: u64,
) -> Result<u64, Failure> {
    let rate = case.rate.unwrap_or(super::writing::NOMINAL);
    let (bytes, least) = match (case.chunk_records, &case.compression) {
        (Some(chunk_records), Some(compression)) => {
            let wait_ms = case.wait_time_ms.unwrap_or(f64::INFINITY);
            let records = whole(records_of(chunk_records, wait_ms, rate));
            let payloads = Payloads::new(compression, seed)?.spelled(case.spells());
            let payload = payloads.per_record(records, rate)?;
            (payload + CHUNK_FRAME / f64::from(records), chunk_records)
        }
        _ => (bytes_of_row(seed) + FRAME, 1),
    };
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a positive number of records"
    )]
    let records = (to_f64(retained_bytes / 2) / bytes) as u64;
    Ok(records.max(u64::from(least)))
}

/// What the writing process hears: so many records of the run have arrived.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct Arrived(pub(super) u64);

/// The writing process's view of what is on its way.
#[derive(Debug)]
pub(super) struct Backlog {
    /// So many may be; nothing: any number.
    most: Option<u64>,
    told: Receiver<Arrived>,
    /// As far as was heard.
    arrived: u64,
    /// Whether the next answer is on its way.
    asked: bool,
    /// How long the load has waited.
    held: Duration,
}

impl Backlog {
    pub(super) const fn new(most: Option<u64>, told: Receiver<Arrived>) -> Self {
        Self {
            most,
            told,
            arrived: 0,
            asked: false,
            held: Duration::ZERO,
        }
    }

    /// How long the load has waited; nothing where it never has to.
    pub(super) fn held(&self) -> Option<Duration> {
        self.most.map(|_| self.held)
    }

    /// Whether another record may be emitted after so many; if not, it has waited for that, for so
    /// long at most. `ask` asks to be told when so many have arrived.
    ///
    /// It is asked for half of what may be on its way: were it told of less, the load would go on by a
    /// few records at a time, and a client library that gathers messages would send batches of few.
    pub(super) fn has_room(
        &mut self,
        emitted: u64,
        patience: Duration,
        ask: impl FnOnce(u64) -> Result<(), Failure>,
    ) -> Result<bool, Failure> {
        let Some(most) = self.most else {
            return Ok(true);
        };
        if emitted.saturating_sub(self.arrived) < most / 2 {
            return Ok(true);
        }
        while let Ok(arrived) = self.told.try_recv() {
            self.hear(arrived);
        }
        // Before it has to wait, so that it need not if the readers keep up.
        if !self.asked && emitted.saturating_sub(self.arrived) >= most / 2 {
            ask(self.arrived + (most / 2).max(1))?;
            self.asked = true;
        }
        if emitted.saturating_sub(self.arrived) < most {
            return Ok(true);
        }
        let since = Instant::now();
        let told = self.told.recv_timeout(patience);
        self.held += since.elapsed();
        match told {
            Ok(arrived) => self.hear(arrived),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Failure::new("nobody tells what arrives any more"));
            }
        }
        Ok(false)
    }

    fn hear(&mut self, Arrived(records): Arrived) {
        self.arrived = self.arrived.max(records);
        self.asked = false;
    }

    /// Waits until nothing more is told, which ends this process.
    pub(super) fn wait_for_the_end(self) {
        while self.told.recv().is_ok() {}
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::super::case::Way;
    use super::*;

    fn case(way: Way, chunk_records: Option<u32>) -> Case {
        Case {
            way,
            chunk_records,
            rate: None,
            compression: chunk_records.map(|_| "none".to_owned()),
            string_table: chunk_records.map(|_| true),
            wait_time_ms: chunk_records.map(|_| 500.0),
            consumers: 1,
        }
    }

    #[test]
    fn half_of_a_partition_or_a_chunk_may_be_on_its_way() {
        let most = |case: &Case, bytes| most_on_their_way(case, bytes, 1).unwrap();
        let plain = most(&case(Way::Pipelined, None), 5 << 20);
        assert!((9_000..12_000).contains(&plain), "{plain}");
        let sizes = [1, 16, 1_024].map(|size| most(&case(Way::Baler, Some(size)), 5 << 20));
        assert!(sizes[0] > 5_000 && sizes[0] * 4 < sizes[1], "{sizes:?}");
        assert!(sizes[1] < sizes[2] && sizes[2] < 600_000, "{sizes:?}");
        let mut spelled = case(Way::Baler, Some(1_024));
        spelled.string_table = Some(false);
        assert!(most(&spelled, 5 << 20) * 2 < sizes[2]);
        // A chunk fills although there is no place for it.
        assert_eq!(most(&case(Way::Baler, Some(65_536)), 1 << 10), 65_536);
    }

    #[test]
    fn the_load_asks_in_time_and_waits_when_too_much_is_on_its_way() {
        let (tell, told) = channel();
        let mut backlog = Backlog::new(Some(100), told);
        let mut asked = Vec::new();
        let mut room = |emitted, patience_ms| {
            let patience = Duration::from_millis(patience_ms);
            let result = backlog.has_room(emitted, patience, |arrived| {
                asked.push((emitted, arrived));
                Ok(())
            });
            (result.unwrap(), backlog.held().unwrap())
        };
        assert!(room(49, 0).0);
        assert!(room(50, 0).0 && room(99, 0).0);
        assert_eq!(room(99, 0).1, Duration::ZERO);
        // Nobody answers.
        let (has_room, held) = room(100, 3);
        assert!(!has_room && held >= Duration::from_millis(3));
        tell.send(Arrived(30)).unwrap();
        assert!(room(100, 0).0 && !room(130, 0).0);
        tell.send(Arrived(130)).unwrap();
        let (has_room, _) = room(131, 60_000);
        assert!(has_room);
        assert_eq!(asked, [(50, 50), (100, 80)]);
        drop(tell);
        assert!(backlog.has_room(230, Duration::ZERO, |_| Ok(())).is_err());
    }

    #[test]
    fn where_nothing_is_forgotten_nothing_is_asked() {
        let mut backlog = Backlog::new(None, channel().1);
        let room = backlog.has_room(u64::MAX, Duration::ZERO, |_| Err(Failure::new("asked")));
        assert!(room.unwrap());
        assert_eq!(backlog.held(), None);
    }
}
