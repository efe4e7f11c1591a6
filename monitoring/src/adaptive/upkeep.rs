//! The patterns of a controller, their settings, and their upkeep on the collector's thread.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use baler_common::mutex::lock;
use baler_connector_kieker::pattern::{Dialect, ListFull, PatternList, Rule};

use super::file::{FileChange, PatternFile, PatternNews};

/// The shortest time between two checks of a file.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(10);

/// How long a changed file must stay the same before it counts as complete.
const SETTLING: Duration = Duration::from_millis(100);

/// At most this number of bad lines of a file is reported.
const MAX_REPORTED_LINES: usize = 100;

/// The settings of adaptive monitoring.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) dialect: Dialect,
    pub(crate) patterns: PatternList,
    pub(crate) file: Option<PathBuf>,
    pub(crate) read_interval: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            dialect: Dialect::default(),
            patterns: PatternList::new(),
            file: None,
            read_interval: Duration::from_secs(30),
        }
    }
}

impl Settings {
    /// Reads the file, so that its patterns are in force before the first probe. News about it wait
    /// for the collector.
    pub(crate) fn start(self) -> (Arc<Switch>, Upkeep) {
        let switch = Arc::new(Switch::new(self.dialect, self.patterns));
        let is_watched = self.file.is_some() && !self.read_interval.is_zero();
        let mut upkeep = Upkeep {
            switch: Arc::clone(&switch),
            file: self.file.map(PatternFile::new),
            read_interval: is_watched.then(|| self.read_interval.max(SHORTEST_INTERVAL)),
            news: Vec::new(),
            is_started: false,
            check_at: None,
        };
        upkeep.check(true);
        (switch, upkeep)
    }
}

/// Watches the file.
#[derive(Debug)]
pub(crate) struct Upkeep {
    switch: Arc<Switch>,
    file: Option<PatternFile>,
    read_interval: Option<Duration>,
    news: Vec<PatternNews>,
    /// Whether there was a tick already.
    is_started: bool,
    check_at: Option<Instant>,
}

/// The result of a tick.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Tick {
    /// Whether the states of the call sites must be set again.
    pub(crate) is_changed: bool,
    /// When to call again at the latest.
    pub(crate) next: Option<Instant>,
}

impl Upkeep {
    /// Does the work that is due. Cheap if there is none.
    pub(crate) fn tick(&mut self, now: Instant) -> Tick {
        let mut is_changed = false;
        if !self.is_started {
            self.is_started = true;
            self.check_at = self.interval_from(now);
        } else if self.check_at.is_some_and(|at| at <= now) {
            let settling = match self.check(false) {
                FileChange::Settling => Some(SETTLING),
                FileChange::Changed(_) => {
                    is_changed = true;
                    None
                }
                FileChange::Same | FileChange::Failed(_) => None,
            };
            let wait = settling.into_iter().chain(self.read_interval).min();
            self.check_at = wait.and_then(|wait| now.checked_add(wait));
        }
        Tick {
            is_changed,
            next: self.check_at,
        }
    }

    /// Returns the news since the last call.
    pub(crate) fn take_news(&mut self) -> Vec<PatternNews> {
        std::mem::take(&mut self.news)
    }

    fn interval_from(&self, now: Instant) -> Option<Instant> {
        self.read_interval.and_then(|wait| now.checked_add(wait))
    }

    fn check(&mut self, at_once: bool) -> FileChange {
        let Some(file) = &mut self.file else {
            return FileChange::Same;
        };
        let path = file.path();
        let path = Arc::clone(path);
        let change = file.check(at_once);
        match &change {
            FileChange::Same | FileChange::Settling => {}
            FileChange::Failed(error) => {
                let error = std::io::Error::new(error.kind(), error.to_string());
                let error = Arc::new(error);
                self.news.push(PatternNews::Unreadable { path, error });
            }
            FileChange::Changed(text) => {
                let (list, errors) = PatternList::parse(text, self.switch.dialect());
                let (rules, bad_lines) = (list.rules().len(), errors.len());
                self.switch.replace(list);
                for error in errors.into_iter().take(MAX_REPORTED_LINES) {
                    let path = Arc::clone(&path);
                    self.news.push(PatternNews::BadLine { path, error });
                }
                self.news.push(PatternNews::Read {
                    path,
                    rules,
                    bad_lines,
                });
            }
        }
        change
    }
}

/// The current patterns of a controller, and the verdicts of the other end of its writer.
#[derive(Debug)]
pub(crate) struct Switch {
    dialect: Dialect,
    list: Mutex<Arc<PatternList>>,
    /// By position of the call site.
    verdicts: Mutex<Arc<Vec<bool>>>,
}

impl Switch {
    pub(super) fn new(dialect: Dialect, list: PatternList) -> Self {
        Self {
            dialect,
            list: Mutex::new(Arc::new(list)),
            verdicts: Mutex::default(),
        }
    }

    /// The dialect of the patterns.
    pub(crate) const fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Adds a rule at the end of the list.
    ///
    /// # Errors
    ///
    /// The list is full; it stays as it was.
    pub(crate) fn push(&self, rule: Rule) -> Result<(), ListFull> {
        let mut current = lock(&self.list);
        let mut list = PatternList::clone(&current);
        list.push(rule)?;
        *current = Arc::new(list);
        Ok(())
    }

    /// Replaces all rules.
    pub(crate) fn replace(&self, list: PatternList) {
        *lock(&self.list) = Arc::new(list);
    }

    /// The rules.
    pub(crate) fn list(&self) -> Arc<PatternList> {
        Arc::clone(&lock(&self.list))
    }

    /// Replaces the verdicts on these positions.
    pub(super) fn judge(&self, judged: &[(usize, bool)]) {
        let mut current = lock(&self.verdicts);
        let mut verdicts = Vec::clone(&current);
        for &(index, is_active) in judged {
            if verdicts.len() <= index {
                verdicts.resize(index + 1, true);
            }
            if let Some(verdict) = verdicts.get_mut(index) {
                *verdict = is_active;
            }
        }
        *current = Arc::new(verdicts);
    }

    /// The verdicts; a site beyond their end may record.
    pub(crate) fn verdicts(&self) -> Arc<Vec<bool>> {
        Arc::clone(&lock(&self.verdicts))
    }
}
