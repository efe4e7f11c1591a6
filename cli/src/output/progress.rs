//! Live progress on standard error, when that is a terminal.

use std::io::{self, IsTerminal as _};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// The line that is shown now. Other output on the terminal hides it meanwhile.
static SHOWN: Mutex<Option<ProgressBar>> = Mutex::new(None);

/// A line of progress while a command works. It shows nothing if standard error is not a terminal.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// Creates a bar that fills up to `total`.
    pub(crate) fn bar(total: u64, quiet: bool) -> Self {
        Self::new(
            ProgressBar::with_draw_target(Some(total), target(quiet)),
            "{bar:30} {percent:>3} %  {msg}",
        )
    }

    /// Creates a line without a known end.
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
        set_shown((!bar.is_hidden()).then(|| bar.clone()));
        Self { bar }
    }

    /// Moves to a position and shows a message. The message is made only if it is visible.
    pub(crate) fn show(&self, position: u64, message: impl FnOnce() -> String) {
        if !self.bar.is_hidden() && !self.bar.is_finished() {
            self.bar.set_position(position);
            let message = message();
            self.bar.set_message(super::escape(&message).into_owned());
        }
    }

    /// Removes the line.
    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
        set_shown(None);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Removes the line that is shown, for good.
pub(super) fn end() {
    if let Some(bar) = shown() {
        bar.finish_and_clear();
        set_shown(None);
    }
}

/// Prints something else on standard error, with the line hidden meanwhile.
pub(super) fn suspended<T>(print: impl FnOnce() -> T) -> T {
    match shown() {
        Some(bar) => bar.suspend(print),
        None => print(),
    }
}

fn shown() -> Option<ProgressBar> {
    SHOWN.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

fn set_shown(bar: Option<ProgressBar>) {
    *SHOWN.lock().unwrap_or_else(PoisonError::into_inner) = bar;
}

fn target(quiet: bool) -> ProgressDrawTarget {
    if quiet || !io::stderr().is_terminal() {
        return ProgressDrawTarget::hidden();
    }
    ProgressDrawTarget::stderr_with_hz(10)
}
