//! What a controller begins with.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use baler_common::pattern::{Dialect, PatternList};

use super::switch::Switch;
use super::upkeep::Upkeep;

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
    /// Reads the file, so that its patterns are in force before the first probe; what is to be told
    /// of it waits for the collector.
    pub(crate) fn start(self) -> (Arc<Switch>, Upkeep) {
        let switch = Arc::new(Switch::new(self.dialect, self.patterns));
        let upkeep = Upkeep::new(
            Arc::clone(&switch),
            self.file,
            self.read_interval,
            self.update_file,
        );
        (switch, upkeep)
    }
}
