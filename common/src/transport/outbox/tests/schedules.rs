//! Random histories over the outbox's whole life, including kills: what a source may settle.

use baler_connector_testkit::{Dice, each_schedule};

use super::fake::{Fake, MediumAction, chunk, start};
use super::*;

const CHUNKS: usize = 12;

#[derive(Debug, Clone, Copy)]
enum Act {
    Push,
    Drive,
    Medium(MediumAction),
    /// The process is gone. A new outbox gets the chunks whose fate the source does not know.
    Kill,
}

fn act(dice: &mut Dice) -> Act {
    match dice.below(19) {
        0..4 => Act::Push,
        4..10 => Act::Drive,
        10..18 => Act::Medium(action(dice)),
        _ => Act::Kill,
    }
}

fn action(dice: &mut Dice) -> MediumAction {
    match dice.below(11) {
        0..6 => MediumAction::Confirm,
        6 => MediumAction::Refuse(RetryClass::Retry),
        7..9 => MediumAction::RefuseNewest,
        9 => MediumAction::Break {
            arrived: dice.once_in(2),
        },
        _ => MediumAction::BreakFor {
            attempts: if dice.once_in(2) { 1 } else { 2 },
        },
    }
}

/// A source, and the outbox's present life.
struct History {
    fake: Fake,
    outbox: Outbox,
    now: Instant,
    next: u64,
    /// Chunks that the source has settled because the outbox reported them as confirmed; by number.
    settled: [bool; CHUNKS],
    fates: Vec<Fate>,
}

impl History {
    fn new(window: usize) -> Self {
        let fake = Fake::new(window);
        Self {
            outbox: fake.outbox(RetryPolicy::default()),
            fake,
            now: start(),
            next: 0,
            settled: [false; CHUNKS],
            fates: Vec::new(),
        }
    }

    fn is_settled(&mut self, ticket: u64) -> &mut bool {
        &mut self.settled[usize::try_from(ticket).unwrap()]
    }

    fn is_at_the_end(&self) -> bool {
        usize::try_from(self.next) == Ok(CHUNKS)
    }

    fn perform(&mut self, act: Act) {
        self.now += Duration::from_millis(400);
        match act {
            Act::Push if !self.is_at_the_end() && self.outbox.has_room() => {
                // Settled in an earlier life: the source does not deliver it again.
                if !*self.is_settled(self.next) {
                    self.outbox.push(chunk(self.next, 10), self.now);
                }
                self.next += 1;
            }
            Act::Push => {}
            Act::Drive => {
                self.outbox.drive(self.now, None, &mut self.fates);
            }
            Act::Medium(action) => self.fake.perform(action),
            Act::Kill => {
                self.fake.perform(MediumAction::Break { arrived: false });
                self.outbox = self.fake.outbox(RetryPolicy::default());
                self.next = 0;
            }
        }
        self.check();
    }

    fn check(&mut self) {
        for fate in std::mem::take(&mut self.fates) {
            let ticket = fate.chunk.ticket;
            assert!(matches!(fate.end, End::Confirmed), "{:?}", fate.end);
            let arrived = self.fake.with(|script| script.arrived.contains(&ticket));
            assert!(arrived, "{ticket} is confirmed and not there");
            assert!(!*self.is_settled(ticket), "a second fate of {ticket}");
            *self.is_settled(ticket) = true;
        }
        // A source that settles along a watermark may go up to here.
        let watermark = self.outbox.first_ticket().unwrap_or(self.next);
        for below in 0..watermark.min(self.next) {
            assert!(*self.is_settled(below), "{below} has no fate");
        }
    }
}

#[test]
fn no_schedule_lets_a_source_settle_what_has_not_arrived() {
    each_schedule(1_000, |dice| {
        let mut history = History::new(1 + dice.below(5));
        for _ in 0..10 + dice.below(70) {
            let act = act(dice);
            history.perform(act);
        }
        for _ in 0..80 {
            for act in [Act::Push, Act::Drive, Act::Medium(MediumAction::Confirm)] {
                history.perform(act);
            }
        }
        assert_eq!(history.settled, [true; CHUNKS], "chunks are stuck");
    });
}
