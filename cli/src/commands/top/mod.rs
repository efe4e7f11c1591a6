//! `baler top`: the figures of a running process, live in a terminal or once for scripts.
//!
//! /metrics -> [`Scraper`] -> pairs of snapshots -> [`View`] -> tables or JSON

mod scrape;
mod screen;
#[cfg(test)]
mod tests;
mod view;

use std::io::{self, IsTerminal as _};
use std::time::Instant;

use scrape::{Scraper, Snapshot};
use screen::Screen;
use view::View;

use crate::args::TopArgs;
use crate::exit::{Code, Failure};
use crate::output;
use crate::shutdown::Shutdown;

/// Shows the figures until a signal comes, or once.
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
    let mut screen = Screen::default();
    let mut before: Option<Snapshot> = None;
    loop {
        let started = Instant::now();
        screen.update(scraper.scrape().map(|now| {
            let view = View::new(scraper.address(), before.as_ref(), &now);
            before = Some(now);
            view
        }));
        output::redraw(&screen.text())?;
        if shutdown.wait_until(started + args.interval) {
            return Ok(Code::Done);
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
