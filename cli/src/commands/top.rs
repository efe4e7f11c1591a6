//! `baler top`: the figures of a running process, live in a terminal or once for scripts.
//!
//! /metrics -> [`Scraper`] -> pairs of snapshots -> [`View`] -> tables or JSON

mod scrape;
mod screen;
#[cfg(test)]
mod tests;
mod view;

use std::io::{self, IsTerminal as _};
use std::time::{Duration, Instant};

use scrape::{Scraper, Snapshot};
use screen::Screen;
use view::View;

use crate::args::TopArgs;
use crate::exit::{Code, Failure};
use crate::output;
use crate::shutdown::Shutdown;

/// How often keys are read.
const KEYS: Duration = Duration::from_millis(50);

/// Shows the figures until `q` or a signal comes, or once.
pub(super) fn run(args: &TopArgs, shutdown: &Shutdown) -> Result<Code, Failure> {
    let scraper = Scraper::new(&args.address)?;
    if args.once {
        return once(args, &scraper, shutdown);
    }
    if !io::stdout().is_terminal() {
        return Err(Failure::configuration(
            "top draws on a terminal and standard output is none: use --once",
        ));
    }
    let terminal = output::AlternateScreen::open()?;
    let keys = match terminal.has_keys() {
        true => "q: end",
        false => "Ctrl+C: end",
    };
    let mut screen = Screen::default();
    let mut before: Option<Snapshot> = None;
    loop {
        let started = Instant::now();
        screen.update(scraper.scrape().map(|now| {
            let view = View::new(scraper.address(), before.as_ref(), &now);
            before = Some(now);
            view
        }));
        terminal.draw(&screen.text(), keys)?;
        let next = started + args.interval;
        while Instant::now() < next {
            let is_over = shutdown.wait_until(next.min(Instant::now() + KEYS));
            if is_over || terminal.key() == Some(b'q') {
                return Ok(Code::Done);
            }
        }
    }
}

/// Prints the view from two scrapes.
fn once(args: &TopArgs, scraper: &Scraper, shutdown: &Shutdown) -> Result<Code, Failure> {
    let away = |error: String| Failure::new(Code::Unavailable, error);
    let first = scraper.scrape().map_err(away)?;
    if shutdown.wait_until(Instant::now() + args.interval) {
        return Ok(Code::Incomplete);
    }
    let second = scraper.scrape().map_err(away)?;
    let view = View::new(scraper.address(), Some(&first), &second);
    output::result(args.format, &view, || view.text(|_| String::new()))?;
    Ok(Code::Done)
}
