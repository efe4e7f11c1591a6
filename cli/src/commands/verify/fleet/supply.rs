//! The records that producers are given to make.

use std::time::{Duration, Instant};

use super::{Fleet, Producer, TICK};
use crate::commands::verify::orders::Order;

/// Records to be given out over time.
#[derive(Debug)]
pub(super) struct Slice {
    records: u64,
    given: u64,
    over: Duration,
    since: Option<Instant>,
}

impl Fleet {
    /// Appends records to be made, spread over a time that begins when those before were given out.
    pub(in crate::commands::verify) fn plan(&mut self, records: u64, over: Duration) {
        self.slices.push_back(Slice {
            records,
            given: 0,
            over,
            since: None,
        });
    }

    /// Whether all planned records were given to producers.
    pub(in crate::commands::verify) fn is_given_out(&self) -> bool {
        self.slices.is_empty() && self.returned == 0
    }

    /// Gives producers what is due; to be called every [`TICK`].
    pub(in crate::commands::verify) fn pump(&mut self) {
        let now = Instant::now();
        let mut due = std::mem::take(&mut self.returned);
        if let Some(slice) = self.slices.front_mut() {
            let since = *slice.since.get_or_insert(now);
            let elapsed = now.saturating_duration_since(since).saturating_add(TICK);
            let nanos = slice.over.as_nanos().max(1);
            let part = u128::from(slice.records).saturating_mul(elapsed.as_nanos()) / nanos;
            let part = u64::try_from(part).unwrap_or(u64::MAX).min(slice.records);
            due = due.saturating_add(part.saturating_sub(slice.given));
            slice.given = part.max(slice.given);
            if slice.given >= slice.records {
                self.slices.pop_front();
            }
        }
        let room = self.window.saturating_sub(self.on_their_way());
        let now_given = due.min(room);
        self.returned = due.saturating_sub(now_given);
        self.give(now_given);
    }

    /// Gives each producer a few records beyond what was planned.
    pub(in crate::commands::verify) fn trickle(&mut self) {
        if self.on_their_way() < self.window {
            for producer in &mut self.producers {
                if producer.process.is_some() {
                    producer.give(100, TICK);
                }
            }
        }
    }

    /// Records that were given out, or acknowledged, and have not arrived.
    fn on_their_way(&self) -> u64 {
        let given = self.producers.iter().fold(0_u64, |sum, producer| {
            sum.saturating_add(producer.settled)
                .saturating_add(producer.given)
        });
        given.saturating_sub(self.board.lock().delivered())
    }

    fn give(&mut self, records: u64) {
        let alive = self.producers.iter().filter(|it| it.process.is_some());
        let count = u64::try_from(alive.count()).unwrap_or(u64::MAX);
        if records == 0 {
            return;
        }
        if count == 0 {
            self.returned = self.returned.saturating_add(records);
            return;
        }
        let alive = self.producers.iter_mut().filter(|it| it.process.is_some());
        for (position, producer) in (0..count).zip(alive) {
            let records = records / count + u64::from(position < records % count);
            if records > 0 {
                producer.give(records, TICK);
            }
        }
    }

    /// Gives records to one producer alone, at once.
    pub(in crate::commands::verify) fn give_to(&mut self, number: usize, records: u64) {
        if let Some(producer) = self.producers.get_mut(number) {
            producer.give(records, Duration::ZERO);
        }
    }
}

impl Producer {
    fn give(&mut self, records: u64, over: Duration) {
        self.given = self.given.saturating_add(records);
        if let Some(process) = &mut self.process {
            process.order(Order::Emit { records, over });
        }
    }
}
