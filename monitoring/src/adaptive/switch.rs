//! The patterns of a controller.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use baler_common::pattern::{Dialect, ListFull, PatternList, Rule};

/// The patterns of a controller, as they are now.
#[derive(Debug)]
pub(crate) struct Switch {
    dialect: Dialect,
    list: Mutex<Arc<PatternList>>,
}

impl Switch {
    pub(super) fn new(dialect: Dialect, list: PatternList) -> Self {
        Self {
            dialect,
            list: Mutex::new(Arc::new(list)),
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
        let mut current = self.lock();
        let mut list = PatternList::clone(&current);
        list.push(rule)?;
        *current = Arc::new(list);
        Ok(())
    }

    /// Replaces all rules.
    pub(crate) fn replace(&self, list: PatternList) {
        *self.lock() = Arc::new(list);
    }

    /// The rules.
    pub(crate) fn list(&self) -> Arc<PatternList> {
        Arc::clone(&self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Arc<PatternList>> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
