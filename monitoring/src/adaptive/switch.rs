//! The patterns of a controller.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use baler_common::pattern::{Action, Dialect, ListFull, PatternList, Rule};

use crate::clock::monotonic;

/// The patterns of a controller, as they are now.
#[derive(Debug)]
pub(crate) struct Switch {
    dialect: Dialect,
    /// When duty cycles began, all of them, so that reading a file again does not shift them.
    began: Instant,
    /// Counts the changes, so that the collector notices one without the lock.
    changes: AtomicU64,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    list: Arc<PatternList>,
    /// Whether the application changed the list since it was read or written.
    is_unwritten: bool,
}

/// What is active at a time.
#[derive(Debug, Clone)]
pub(crate) struct Verdicts {
    list: Arc<PatternList>,
    elapsed: Duration,
}

impl Switch {
    pub(super) fn new(dialect: Dialect, list: PatternList) -> Self {
        Self {
            dialect,
            began: monotonic(),
            changes: AtomicU64::new(0),
            state: Mutex::new(State {
                list: Arc::new(list),
                is_unwritten: false,
            }),
        }
    }

    /// How patterns are written.
    pub(crate) const fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Adds a rule behind the others.
    ///
    /// # Errors
    ///
    /// When the list is full; it is then as before.
    pub(crate) fn push(&self, rule: Rule) -> Result<(), ListFull> {
        let mut state = self.lock();
        let mut list = PatternList::clone(&state.list);
        list.push(rule)?;
        self.set(&mut state, list, true);
        Ok(())
    }

    /// Replaces all rules by those that the application wants.
    pub(crate) fn replace(&self, list: PatternList) {
        self.set(&mut self.lock(), list, true);
    }

    /// Replaces all rules by those of the file.
    pub(super) fn take_over(&self, list: PatternList) {
        self.set(&mut self.lock(), list, false);
    }

    fn set(&self, state: &mut State, list: PatternList, is_unwritten: bool) {
        state.list = Arc::new(list);
        state.is_unwritten = is_unwritten;
        self.changes.fetch_add(1, Ordering::Release);
    }

    /// The rules.
    pub(crate) fn list(&self) -> Arc<PatternList> {
        Arc::clone(&self.lock().list)
    }

    /// The rules, if they were changed by the application since they were asked for here.
    pub(super) fn take_unwritten(&self) -> Option<Arc<PatternList>> {
        let mut state = self.lock();
        std::mem::take(&mut state.is_unwritten).then(|| Arc::clone(&state.list))
    }

    pub(super) fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    /// What is active now.
    pub(crate) fn verdicts(&self) -> Verdicts {
        Verdicts {
            list: self.list(),
            elapsed: monotonic().saturating_duration_since(self.began),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Verdicts {
    /// Everything is active.
    #[cfg(test)]
    pub(crate) fn all_active() -> Self {
        Self {
            list: Arc::new(PatternList::new()),
            elapsed: Duration::ZERO,
        }
    }

    /// Whether these come from the same list; the time may be another one.
    pub(crate) fn has_list_of(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.list, &other.list)
    }

    /// Whether there is a pattern at all.
    pub(crate) fn is_trivial(&self) -> bool {
        self.list.is_empty()
    }

    /// What becomes of the probe with this signature. Tries each pattern.
    pub(crate) fn action(&self, signature: &str) -> Action {
        self.list.decide(signature)
    }

    /// Whether a probe with this action records.
    pub(crate) fn is_active(&self, action: Action) -> bool {
        action.is_active(self.elapsed)
    }

    /// How long this holds unless the list changes; `None` without duty cycles.
    pub(super) fn valid_for(&self) -> Option<Duration> {
        let rules = self.list.rules().iter();
        rules
            .filter_map(|rule| match rule.action {
                Action::Cycle(cycle) => Some(cycle.until_change(self.elapsed)),
                Action::Activate | Action::Deactivate => None,
            })
            .min()
    }
}
