//! Live progress on standard error, when that is a terminal.

use std::io::{self, IsTerminal as _};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A line that moves while a command works; nothing when standard error is no terminal.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// A bar that fills up to `total`.
    pub(crate) fn bar(total: u64, quiet: bool) -> Self {
        Self::new(
            ProgressBar::with_draw_target(Some(total), target(quiet)),
            "{bar:30} {percent:>3} %  {msg}",
        )
    }

    /// A line without a known end.
    pub(crate) fn spinner(quiet: bool) -> Self {
        let progress = Self::new(
            ProgressBar::with_draw_target(None, target(quiet)),
            "{spinner} {elapsed}  {msg}",
        );
        if !progress.bar.is_hidden() {
            progress.bar.enable_steady_tick(Duration::from_millis(100));
        }
        progress
    }

    fn new(bar: ProgressBar, template: &str) -> Self {
        // The templates above are right: a wrong one would leave the default style.
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        Self { bar }
    }

    /// Moves to a position and shows a message, made only when it is seen.
    pub(crate) fn show(&self, position: u64, message: impl FnOnce() -> String) {
        if !self.bar.is_hidden() {
            self.bar.set_position(position);
            self.bar.set_message(message());
        }
    }

    /// Removes the line.
    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}

fn target(quiet: bool) -> ProgressDrawTarget {
    if quiet || !io::stderr().is_terminal() {
        return ProgressDrawTarget::hidden();
    }
    ProgressDrawTarget::stderr_with_hz(10)
}
