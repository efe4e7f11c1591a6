//! The end of a run: everything given out, everything arrived, one record more.

use std::time::Instant;

use super::Run;
use crate::commands::verify::fleet::TICK;
use crate::commands::verify::orders::Order;
use crate::exit::Failure;

impl Run<'_> {
    /// Waits until everything is given out, then ends all producers in good order.
    pub(super) fn drain(&self) -> Result<(), Failure> {
        let by = Instant::now() + self.args.patience;
        while !self.fleet().is_given_out() {
            self.pause(TICK);
            self.interrupted()?;
            if Instant::now() > by {
                let message = "not all records could be given to producers in time";
                self.fleet().violations.push(message.to_owned());
                break;
            }
        }
        // Nobody looks after processes in between: they end because they are told to.
        let mut fleet = self.fleet();
        for number in 0..fleet.producers() {
            if let Some(process) = fleet.producer(number) {
                process.order(Order::Finish);
            }
        }
        for number in 0..fleet.producers() {
            fleet.end_producer(number, |_| {});
        }
        Ok(())
    }

    /// Waits until everything acknowledged has arrived.
    pub(super) fn complete(&self, violations: &mut Vec<String>) {
        let by = Instant::now() + self.args.patience;
        loop {
            let soon = Instant::now() + TICK;
            if self.board.lock().is_complete() {
                return;
            }
            let known = self.board.lock().delivered();
            self.board
                .wait_for(soon, |oracle| oracle.delivered() != known);
            if Instant::now() > by {
                let oracle = self.board.lock();
                violations.push(format!(
                    "after {:?} {} of {} acknowledged records were delivered",
                    self.args.patience,
                    oracle.delivered(),
                    oracle.acknowledged(),
                ));
                return;
            }
            if self.shutdown.is_requested() {
                return;
            }
        }
    }

    /// Sends one record more by each producer; whether they arrive.
    pub(super) fn fresh(&self) -> Result<bool, Failure> {
        let count = self.fleet().producers();
        let before = self.board.lock().delivered();
        for number in 0..count {
            self.fleet().revive_producer(number, &[])?;
            self.fleet().give_to(number, 1);
            if let Some(process) = self.fleet().producer(number) {
                process.order(Order::Finish);
            }
        }
        let wanted = before.saturating_add(u64::try_from(count).unwrap_or(0));
        let by = Instant::now() + self.args.patience;
        let passed = self
            .board
            .wait_for(by, |oracle| oracle.delivered() >= wanted);
        for number in 0..count {
            self.fleet().end_producer(number, |_| {});
        }
        Ok(passed)
    }

    /// Ends all consumers in good order.
    pub(super) fn end_consumers(&self) {
        let count = self.fleet().consumers();
        for number in 0..count {
            if let Some(process) = self.fleet().consumer(number) {
                process.order(Order::Finish);
            }
        }
        for number in 0..count {
            self.fleet().end_consumer(number, |_| {});
        }
    }
}
