//! The settings of adaptive monitoring, and what the collector's thread does for it in between.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use baler_common::pattern::{Dialect, PatternList};

use super::file::{Look, PatternFile};
use super::news::PatternNews;
use super::switch::Switch;
use crate::clock::monotonic;

/// No file is looked at more often.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(10);

/// How long a file that changed is given to be complete.
const SETTLING: Duration = Duration::from_millis(100);

/// At most this number of bad lines of a file is reported.
const TOLD_LINES: usize = 100;

/// The settings of adaptive monitoring.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) dialect: Dialect,
    pub(crate) patterns: PatternList,
    pub(crate) file: Option<PathBuf>,
    pub(crate) read_interval: Duration,
    pub(crate) update_file: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            dialect: Dialect::default(),
            patterns: PatternList::new(),
            file: None,
            read_interval: Duration::from_secs(30),
            update_file: false,
        }
    }
}

impl Settings {
    /// Reads the file, so that its patterns are in force before the first probe; news about it wait
    /// for the collector.
    pub(crate) fn start(self) -> (Arc<Switch>, Upkeep) {
        let switch = Arc::new(Switch::new(self.dialect, self.patterns));
        let is_watched = self.file.is_some() && !self.read_interval.is_zero();
        let mut upkeep = Upkeep {
            switch: Arc::clone(&switch),
            file: self.file.map(PatternFile::new),
            read_interval: is_watched.then(|| self.read_interval.max(SHORTEST_INTERVAL)),
            update_file: self.update_file,
            news: Vec::new(),
            seen: None,
            look_at: None,
            turn_at: None,
        };
        upkeep.look(true);
        (switch, upkeep)
    }
}

/// Watches the file, writes it, and keeps duty cycles going.
#[derive(Debug)]
pub(crate) struct Upkeep {
    switch: Arc<Switch>,
    file: Option<PatternFile>,
    read_interval: Option<Duration>,
    update_file: bool,
    news: Vec<PatternNews>,
    /// The list that was looked at last.
    seen: Option<u64>,
    look_at: Option<Instant>,
    turn_at: Option<Instant>,
}

/// What came of a tick.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Tick {
    /// Whether the states of the call sites have to be set anew.
    pub(crate) is_changed: bool,
    /// When to come again at the latest.
    pub(crate) next: Option<Instant>,
}

impl Upkeep {
    /// Does the work that is due. Cheap if there is none.
    pub(crate) fn tick(&mut self, now: Instant) -> Tick {
        let mut is_changed = false;
        if self.seen.is_none() {
            self.look_at = self.interval_from(now);
        } else if self.look_at.is_some_and(|at| at <= now) {
            let settling = match self.look(false) {
                Look::Settling => Some(SETTLING),
                Look::Changed(_) => {
                    is_changed = true;
                    None
                }
                Look::Same | Look::Failed(_) => None,
            };
            let wait = settling.into_iter().chain(self.read_interval).min();
            self.look_at = wait.and_then(|wait| now.checked_add(wait));
        }
        let changes = self.switch.changes();
        if self.seen != Some(changes) {
            self.seen = Some(changes);
            self.write();
            self.plan_turn();
        } else if self.turn_at.is_some_and(|at| at <= now) {
            is_changed = true;
            self.plan_turn();
        }
        Tick {
            is_changed,
            next: [self.look_at, self.turn_at].into_iter().flatten().min(),
        }
    }

    /// The news since the last call.
    pub(crate) fn take_news(&mut self) -> Vec<PatternNews> {
        std::mem::take(&mut self.news)
    }

    fn interval_from(&self, now: Instant) -> Option<Instant> {
        self.read_interval.and_then(|wait| now.checked_add(wait))
    }

    /// When the next duty cycle changes.
    fn plan_turn(&mut self) {
        let valid_for = self.switch.verdicts().valid_for();
        // Read after the verdicts' time, so that the turn has come by then.
        self.turn_at = valid_for.and_then(|wait| monotonic().checked_add(wait));
    }

    fn look(&mut self, at_once: bool) -> Look {
        let Some(file) = &mut self.file else {
            return Look::Same;
        };
        let path = file.path();
        let path = Arc::clone(path);
        let look = file.look(at_once);
        match &look {
            Look::Same | Look::Settling => {}
            Look::Failed(error) => {
                let error = std::io::Error::new(error.kind(), error.to_string());
                let error = Arc::new(error);
                self.news.push(PatternNews::Unreadable { path, error });
            }
            Look::Changed(text) => {
                let (list, errors) = PatternList::parse(text, self.switch.dialect());
                let (rules, bad_lines) = (list.rules().len(), errors.len());
                self.switch.take_over(list);
                for error in errors.into_iter().take(TOLD_LINES) {
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
        look
    }

    /// Writes what the application changed, if it wants that.
    fn write(&mut self) {
        let (Some(file), true) = (&mut self.file, self.update_file) else {
            return;
        };
        if let Some(list) = self.switch.take_unwritten() {
            if let Err(error) = file.write(&list) {
                self.news.push(PatternNews::Unwritable {
                    path: Arc::clone(file.path()),
                    error: Arc::new(error),
                });
            }
        }
    }
}
