//! The end of a run: everything given out, everything arrived, one record more.

use std::time::{Duration, Instant};

use super::Run;
use crate::commands::verify::fleet::TICK;
use crate::exit::Failure;

/// How long to wait at most for consumers that have no broker, or no part of the medium.
const AWAY: Duration = Duration::from_secs(600);

impl Run<'_> {
    /// Waits until everything is given out, then ends all producers in good order.
    pub(super) fn drain(&self) -> Result<(), Failure> {
        let all = self.wait_until(|| self.fleet().is_given_out());
        self.interrupted()?;
        if !all {
            let message = "not all records could be given to producers in time";
            self.fleet().violations.push(message.to_owned());
        }
        // Nobody looks after processes in between: they end because they are told to.
        self.fleet().finish_producers();
        Ok(())
    }

    /// Waits until a condition holds; whether it does. Gives up when no chunk moved for `--patience`
    /// while every consumer had its broker and its part of the medium.
    fn wait_until(&self, mut holds: impl FnMut() -> bool) -> bool {
        let start = Instant::now();
        let (mut moved, mut since) = (None, start);
        loop {
            if holds() {
                return true;
            }
            let (now_moved, is_cut_off) = {
                let oracle = self.board.lock();
                (oracle.moved(), oracle.is_cut_off())
            };
            let now = Instant::now();
            let is_away = is_cut_off && now.duration_since(start) < AWAY;
            if moved.replace(now_moved) != Some(now_moved) || is_away {
                since = now;
            }
            if now.duration_since(since) > self.args.patience || self.shutdown.is_requested() {
                return false;
            }
            self.pause(TICK);
        }
    }

    /// Waits until everything acknowledged has arrived.
    pub(super) fn complete(&self, violations: &mut Vec<String>) {
        if !self.wait_until(|| self.board.lock().is_complete()) {
            let oracle = self.board.lock();
            violations.push(format!(
                "{} of {} acknowledged records were delivered, then nothing more came for {:?}",
                oracle.delivered(),
                oracle.acknowledged(),
                self.args.patience,
            ));
        }
    }

    /// Sends one more record by each producer; whether they arrive.
    pub(super) fn fresh(&self) -> Result<bool, Failure> {
        // The lock must not be held in the loop.
        let count = self.fleet().producers();
        let mut lives = Vec::new();
        for number in 0..count {
            let mut fleet = self.fleet();
            fleet.revive_producer(number, &[])?;
            fleet.give_to(number, 1);
            let producer = u16::try_from(number).unwrap_or(u16::MAX);
            lives.push((producer, fleet.life(number)));
        }
        self.fleet().finish_producers();
        let passed = self.wait_until(|| {
            let oracle = self.board.lock();
            let mut lives = lives.iter();
            lives.all(|(producer, life)| oracle.has_arrived(*producer, *life))
        });
        // Copies, and records that nobody sent, may still follow. They are judged, too.
        self.wait_until(|| self.board.lock().is_at_end());
        Ok(passed)
    }
}
