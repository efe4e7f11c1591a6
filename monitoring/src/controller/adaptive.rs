//! Adaptive monitoring: which probes and samplers are active.

use std::path::PathBuf;
use std::time::Duration;

use baler_connector_kieker::pattern::{Action, Dialect, LineProblem, Pattern, PatternList, Rule};

use super::installed;
use super::{Controller, ControllerBuilder};

/// # Adaptive monitoring
///
/// Patterns over signatures decide which probes record, and which samplers. The last matching
/// pattern counts. A signature that no pattern matches is active. The patterns of the process-wide
/// controller apply.
///
/// Some media let the other end of the writer switch probes as well, such as `kieker+tcp:` with
/// `adaptive=true`. A probe then records if the patterns and the other end both allow it.
///
/// A call that began while its probe was active is recorded when it ends. A call that begins while
/// the patterns change may still use the old ones, once. [`emit`](Self::emit) is not affected,
/// because a record has no signature. In the child of a [fork](Self#fork) a parent's controller has
/// no patterns, and accepts none.
impl Controller {
    /// Makes the probes that this pattern matches record (Kieker's `activateProbe`).
    ///
    /// # Errors
    ///
    /// The pattern is wrong (the error names the place), or there are too many patterns. The
    /// patterns stay as they were.
    pub fn activate(&self, pattern: &str) -> Result<(), LineProblem> {
        self.add(pattern, Action::Activate)
    }

    /// Makes the probes that this pattern matches stop recording (Kieker's `deactivateProbe`).
    ///
    /// # Errors
    ///
    /// As for [`activate`](Self::activate).
    pub fn deactivate(&self, pattern: &str) -> Result<(), LineProblem> {
        self.add(pattern, Action::Deactivate)
    }

    fn add(&self, pattern: &str, action: Action) -> Result<(), LineProblem> {
        if self.shared().is_forked() {
            return Ok(());
        }
        let pattern = Pattern::parse(pattern, self.switch().dialect())?;
        self.switch().push(Rule { pattern, action })?;
        self.patterns_changed();
        Ok(())
    }

    /// Replaces all patterns (Kieker's `setProbePatternList`).
    pub fn set_patterns(&self, patterns: PatternList) {
        if self.shared().is_forked() {
            return;
        }
        self.switch().replace(patterns);
        self.patterns_changed();
    }

    /// Returns the patterns in force; the last one that matches counts.
    pub fn patterns(&self) -> PatternList {
        if self.shared().is_forked() {
            return PatternList::new();
        }
        PatternList::clone(&self.switch().list())
    }

    /// Whether the patterns let a probe with this signature record now (Kieker's `isProbeActivated`).
    /// Tries each pattern, so use it for code that makes its own records, but not for every record.
    pub fn is_probe_active(&self, signature: &str) -> bool {
        if !self.is_enabled() {
            return false;
        }
        self.switch().list().is_active(signature)
    }

    fn patterns_changed(&self) {
        installed::refresh_active(self.shared());
    }
}

/// # Adaptive monitoring
impl ControllerBuilder {
    /// The syntax of patterns, in the file and in [`Controller::activate`]. Default
    /// [`Dialect::Strict`]: Kieker's syntax without its oversights.
    pub fn dialect(mut self, dialect: Dialect) -> Self {
        self.adaptive.dialect = dialect;
        self
    }

    /// The first patterns. Default none: everything is active. The patterns of a
    /// [file](Self::pattern_file) replace them.
    pub fn patterns(mut self, patterns: PatternList) -> Self {
        self.adaptive.patterns = patterns;
        self
    }

    /// A file of patterns (`kieker.monitoring.adaptiveMonitoring.configFile`): lines with `+` or `-`
    /// and a pattern, `#` for comments. Default none.
    ///
    /// [`start`](Self::start) reads it, and the collector reads it again when it changes. Its
    /// patterns then replace all others. A change counts after the file has been the same for 100
    /// ms, so that an incomplete text does not count. Bad lines are left out and reported
    /// ([`Event::Patterns`](crate::Event::Patterns)). If the file cannot be read, the patterns stay
    /// as they are. It may have at most 1 MiB.
    pub fn pattern_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.adaptive.file = Some(path.into());
        self
    }

    /// How often the collector's thread checks the file for changes, at least 10 ms; zero means
    /// never. Default 30 s (`kieker.monitoring.adaptiveMonitoring.readInterval`).
    pub fn pattern_read_interval(mut self, interval: Duration) -> Self {
        self.adaptive.read_interval = interval;
        self
    }
}
