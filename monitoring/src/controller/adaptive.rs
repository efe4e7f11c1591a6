//! Adaptive monitoring: which probes and samplers are active.

use std::path::PathBuf;
use std::time::Duration;

use baler_common::pattern::{Action, Dialect, LineProblem, Pattern, PatternList, Rule};

use super::installed;
use super::{Controller, ControllerBuilder};

/// # Adaptive monitoring
///
/// Which probes record, and which samplers, is decided by patterns over their signatures: the last
/// pattern that matches counts, and what none matches is active.
/// They are those of the process-wide controller.
///
/// A call that began while its probe was active is recorded when it ends; one that begins while the
/// patterns change may still go by the ones before, once.
/// [`emit`](Self::emit) is not affected, as a record has no signature.
/// In the child of a [fork](Self#fork) the patterns of a parent's controller are none, and stay so.
impl Controller {
    /// Makes the probes that this pattern matches record (Kieker's `activateProbe`).
    ///
    /// # Errors
    ///
    /// Where the pattern is wrong, or that there are too many; the patterns are then as before.
    pub fn activate(&self, pattern: &str) -> Result<(), LineProblem> {
        self.add(pattern, Action::Activate)
    }

    /// Makes the probes that this pattern matches record no more (Kieker's `deactivateProbe`).
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

    /// The patterns that are in force; the last one that matches counts.
    pub fn patterns(&self) -> PatternList {
        if self.shared().is_forked() {
            return PatternList::new();
        }
        PatternList::clone(&self.switch().list())
    }

    /// Whether a probe with this signature would record now (Kieker's `isProbeActivated`). Tries
    /// each pattern: for code that makes records of its own, not for every record.
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
    /// How patterns are written, in the file and by [`Controller::activate`]. Default
    /// [`Dialect::Strict`]: Kieker's syntax without its oversights.
    pub fn dialect(mut self, dialect: Dialect) -> Self {
        self.adaptive.dialect = dialect;
        self
    }

    /// The patterns to begin with. Default none: everything is active. Those of a
    /// [file](Self::pattern_file) replace them.
    pub fn patterns(mut self, patterns: PatternList) -> Self {
        self.adaptive.patterns = patterns;
        self
    }

    /// A file of patterns (`kieker.monitoring.adaptiveMonitoring.configFile`): lines with `+` or `-`
    /// and a pattern, `#` for comments. Default none.
    ///
    /// It is read by [`start`](Self::start), and again when it changes; its patterns then replace
    /// all others. A change counts when the file was the same for 100 ms, so that a text being
    /// written is not taken for a whole one.
    /// Bad lines are left out and told ([`Event::Patterns`](crate::Event::Patterns)); when the file
    /// cannot be read, the patterns stay as they are. It is 1 MiB large at most.
    pub fn pattern_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.adaptive.file = Some(path.into());
        self
    }

    /// How often to look whether the file has changed, on the collector's thread, from 10 ms on; zero
    /// for never. Default 30 s (`kieker.monitoring.adaptiveMonitoring.readInterval`).
    pub fn pattern_read_interval(mut self, interval: Duration) -> Self {
        self.adaptive.read_interval = interval;
        self
    }
}
