//! What was delivered on a channel and what became of it. No I/O here.

use std::collections::{HashSet, VecDeque};

use baler_common::transport::{Settled, Token, Verdict};

/// What was delivered on a channel and what became of it.
///
/// A channel numbers its deliveries from 1 without gaps (AMQP 0.9.1, `delivery-tag`); tokens go on
/// across channels, so that one of an earlier channel is known to be stale.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    /// The tokens of earlier channels end here.
    offset: u64,
    /// How many deliveries of this channel are done with and forgotten.
    forgotten: u64,
    /// The deliveries that follow.
    states: VecDeque<State>,
    /// How many of them are handed out and not settled.
    handed: usize,
    /// How many of them are acknowledged and the broker does not know it.
    owed: usize,
    /// What is handed out of earlier channels and not settled.
    stale: HashSet<Token>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Not handed out.
    Waiting,
    /// Handed out and not settled.
    Handed,
    /// Settled, and the broker must be told.
    Acknowledged,
    /// Settled, and the broker is told by itself.
    Told,
}

/// An acknowledgement to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Acknowledgement {
    pub(super) tag: u64,
    /// It is for everything up to this tag.
    pub(super) multiple: bool,
}

impl Ledger {
    /// The next delivery is there; whether it is the next one indeed. If it is not, one was lost
    /// in between, and acknowledging past it would lose it for good.
    pub(super) fn arrive(&mut self, tag: u64) -> bool {
        let known = u64::try_from(self.states.len()).unwrap_or(u64::MAX);
        let follows = tag == self.forgotten.saturating_add(known).saturating_add(1);
        if follows {
            self.states.push_back(State::Waiting);
        }
        follows
    }

    fn state(&mut self, tag: u64) -> Option<&mut State> {
        let at = tag.checked_sub(self.forgotten.saturating_add(1))?;
        self.states.get_mut(usize::try_from(at).ok()?)
    }

    /// A delivery is handed out, and named so.
    pub(super) fn hand_out(&mut self, tag: u64) -> Token {
        if let Some(state) = self.state(tag) {
            *state = State::Handed;
            self.handed += 1;
        }
        Token(self.offset.saturating_add(tag))
    }

    /// A delivery that is not handed out is done with; the broker is told of it alone.
    pub(super) fn put_aside(&mut self, tag: u64) {
        if let Some(state) = self.state(tag) {
            *state = State::Told;
        }
    }

    /// The owner settled; yields the tag of which the broker must be told alone, if it must.
    pub(super) fn settle(&mut self, token: Token, verdict: Verdict) -> (Settled, Option<u64>) {
        let tag = token.0.saturating_sub(self.offset);
        let Some(state) = self.state(tag).filter(|state| **state == State::Handed) else {
            self.stale.remove(&token);
            return (Settled::Stale, None);
        };
        let alone = match verdict {
            Verdict::Ack => {
                *state = State::Acknowledged;
                self.owed += 1;
                None
            }
            Verdict::Reject | Verdict::Retry => {
                *state = State::Told;
                Some(tag)
            }
        };
        self.handed -= 1;
        (Settled::Done, alone)
    }

    /// How many deliveries are handed out and not settled.
    pub(super) fn handed(&self) -> usize {
        self.handed + self.stale.len()
    }

    /// How many deliveries of this channel the broker counts as unsettled although they were handed
    /// out.
    pub(super) fn taken(&self) -> usize {
        self.handed + self.owed
    }

    /// How many acknowledgements the broker is owed.
    pub(super) fn owed(&self) -> usize {
        self.owed
    }

    /// The acknowledgements to be sent now: one for the contiguous watermark. Behind an unsettled
    /// delivery more than `behind` may not pile up, or the broker would stop to deliver: they are
    /// acknowledged one by one.
    pub(super) fn acknowledge(&mut self, behind: usize) -> Vec<Acknowledgement> {
        let mut acknowledgements = Vec::new();
        let mut last = None;
        while let Some(State::Acknowledged | State::Told) = self.states.front() {
            self.forgotten += 1;
            if self.states.pop_front() == Some(State::Acknowledged) {
                self.owed -= 1;
                // Told ones must not be named again: the broker closes the channel for that.
                last = Some(self.forgotten);
            }
        }
        acknowledgements.extend(last.map(|tag| Acknowledgement {
            tag,
            multiple: true,
        }));
        if self.owed > behind {
            for (tag, state) in (self.forgotten + 1..).zip(&mut self.states) {
                if *state == State::Acknowledged {
                    *state = State::Told;
                    let multiple = false;
                    acknowledgements.push(Acknowledgement { tag, multiple });
                }
            }
            self.owed = 0;
        }
        acknowledgements
    }

    /// The channel is gone: everything of it that the broker was not told of comes again.
    pub(super) fn reset(&mut self) {
        let tags = (self.forgotten + 1..).zip(&self.states);
        let handed = tags.filter(|(_, state)| **state == State::Handed);
        self.stale
            .extend(handed.map(|(tag, _)| Token(self.offset.saturating_add(tag))));
        let known = u64::try_from(self.states.len()).unwrap_or(u64::MAX);
        self.offset = self
            .offset
            .saturating_add(self.forgotten)
            .saturating_add(known);
        self.forgotten = 0;
        self.states.clear();
        self.handed = 0;
        self.owed = 0;
    }
}

#[cfg(test)]
mod tests {

    use super::*;

    fn with(deliveries: u64) -> (Ledger, Vec<Token>) {
        let mut ledger = Ledger::default();
        let tokens = (1..=deliveries).map(|tag| {
            assert!(ledger.arrive(tag));
            ledger.hand_out(tag)
        });
        let tokens = tokens.collect();
        (ledger, tokens)
    }

    #[test]
    fn watermark_stops_at_what_is_not_settled() {
        let (mut ledger, tokens) = with(5);
        for at in [4, 2, 0] {
            assert_eq!(
                ledger.settle(tokens[at], Verdict::Ack),
                (Settled::Done, None)
            );
        }
        let up_to = |tag| {
            [Acknowledgement {
                tag,
                multiple: true,
            }]
        };
        assert_eq!(ledger.acknowledge(9), up_to(1));
        assert_eq!(ledger.acknowledge(9), []);
        ledger.settle(tokens[1], Verdict::Ack);
        assert_eq!(ledger.acknowledge(9), up_to(3));
        assert_eq!((ledger.handed(), ledger.owed()), (1, 1));
    }

    #[test]
    fn what_the_broker_was_told_alone_is_not_named_again() {
        let (mut ledger, tokens) = with(3);
        ledger.settle(tokens[0], Verdict::Ack);
        assert_eq!(
            ledger.settle(tokens[1], Verdict::Retry),
            (Settled::Done, Some(2))
        );
        assert_eq!(
            ledger.settle(tokens[2], Verdict::Reject),
            (Settled::Done, Some(3))
        );
        assert_eq!(
            ledger.acknowledge(9),
            [Acknowledgement {
                tag: 1,
                multiple: true
            }]
        );
        assert_eq!(ledger.acknowledge(0), []);
    }

    #[test]
    fn tokens_of_an_earlier_channel_are_stale_and_counted_until_settled() {
        let (mut ledger, tokens) = with(2);
        ledger.reset();
        assert_eq!(ledger.handed(), 2);
        assert!(ledger.arrive(1));
        let token = ledger.hand_out(1);
        assert!(!tokens.contains(&token));
        assert_eq!(ledger.handed(), 3);
        for token in tokens {
            assert_eq!(ledger.settle(token, Verdict::Ack), (Settled::Stale, None));
        }
        assert_eq!(ledger.handed(), 1);
        assert_eq!(ledger.settle(token, Verdict::Ack), (Settled::Done, None));
    }

    #[test]
    fn gap_in_the_tags_is_noticed() {
        let (mut ledger, _) = with(2);
        assert!(!ledger.arrive(4));
        assert!(!ledger.arrive(2));
        assert!(ledger.arrive(3));
    }
}
