//! Flushes and the end of the epoch.

use super::super::batch::ClosedBy;
use super::super::flush::{FlushEnd, FlushStage};
use super::Collector;

impl Collector {
    /// Moves flushes on, and ends those whose chunks have their fates.
    pub(super) fn advance_flushes(&mut self) {
        if self.flushes.is_empty() {
            return;
        }
        let mut flushes = std::mem::take(&mut self.flushes);
        for flush in &mut flushes {
            if let FlushStage::Draining(marks) = &flush.stage
                && self.queues.has_passed(marks)
                && self.dispatch.has_room()
            {
                self.close_all(ClosedBy::Flush);
                flush.stage = FlushStage::Confirming(self.dispatch.next_ticket());
            }
        }
        flushes.retain(|flush| match flush.stage {
            FlushStage::Confirming(below) if self.dispatch.has_settled(below) => {
                let lost = self.shared.ledger.losses().total();
                let lost = lost.saturating_sub(flush.lost_before);
                flush.order.end(FlushEnd { lost });
                false
            }
            // An outage may last longer than the patience of many who ask.
            _ => !flush.order.is_abandoned(),
        });
        self.flushes = flushes;
    }

    /// Sends the epoch's last chunk, once all before it have their fates and its losses are
    /// complete.
    pub(super) fn close_epoch(&mut self) {
        if self.dispatch.has_sent_last() {
            return;
        }
        if !self.dispatch.is_empty() {
            // The records need not wait for the confirmations that their account waits for.
            if self.dispatch.has_room() {
                self.close_all(ClosedBy::Flush);
            }
            return;
        }
        if self.lanes.len() == 1 {
            self.close(0, ClosedBy::Flush, true);
        } else if self.lanes.iter().any(|lane| lane.batched > 0) {
            // What is lost of one lane must stand in the last chunk of every other.
            self.close_all(ClosedBy::Flush);
            return;
        }
        self.dispatch.ship_last();
    }
}
