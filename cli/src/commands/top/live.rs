//! The loop of the live view: keys on one thread, looking at the process on another.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, mpsc::TryRecvError};
use std::thread;
use std::time::{Duration, Instant};

use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::scrape::{Scraper, Snapshot};
use super::screen::Screen;
use super::view::View;
use crate::shutdown::Shutdown;

/// The intervals that + and - choose from, in milliseconds.
const INTERVALS_MS: [u64; 7] = [250, 500, 1_000, 2_000, 5_000, 10_000, 30_000];

/// How soon a key or an answer is seen.
const TICK: Duration = Duration::from_millis(50);

/// Draws until q is pressed or a signal comes.
///
/// # Errors
///
/// The terminal cannot be drawn on or read.
pub(super) fn run(scraper: Scraper, interval: Duration, shutdown: &Shutdown) -> io::Result<()> {
    let mut screen = Screen::new(scraper.address(), interval);
    let every_ms = Arc::new(AtomicU64::new(millis(interval)));
    let (seen, views) = channel();
    let looker = (Arc::clone(&every_ms), shutdown.clone());
    thread::Builder::new()
        .name("baler-scrape".to_owned())
        .spawn(move || look(&scraper, &looker.0, &looker.1, &seen))?;
    let mut terminal = ratatui::try_init()?;
    let drawn = draw(&mut terminal, &mut screen, &views, &every_ms, shutdown);
    let restored = ratatui::try_restore();
    drawn.and(restored)
}

/// Looks at the process again and again, until nobody wants to know or the end is asked for.
fn look(
    scraper: &Scraper,
    every_ms: &AtomicU64,
    shutdown: &Shutdown,
    seen: &Sender<Result<View, String>>,
) {
    let mut before: Option<Snapshot> = None;
    loop {
        let started = Instant::now();
        let view = match scraper.scrape() {
            Ok(now) => {
                let view = View::new(scraper.address(), before.as_ref(), &now);
                before = Some(now);
                Ok(view)
            }
            Err(error) => Err(error),
        };
        if seen.send(view).is_err() {
            return;
        }
        // A shorter interval counts at once.
        loop {
            let next = started + Duration::from_millis(every_ms.load(Ordering::Relaxed));
            let now = Instant::now();
            if now >= next {
                break;
            }
            if shutdown.wait_until(next.min(now + TICK)) {
                return;
            }
        }
    }
}

fn draw(
    terminal: &mut DefaultTerminal,
    screen: &mut Screen,
    views: &Receiver<Result<View, String>>,
    every_ms: &AtomicU64,
    shutdown: &Shutdown,
) -> io::Result<()> {
    let mut changed = true;
    while !shutdown.is_requested() {
        loop {
            match views.try_recv() {
                Ok(_) if screen.paused => {}
                Ok(seen) => {
                    screen.update(seen);
                    changed = true;
                }
                Err(TryRecvError::Empty | TryRecvError::Disconnected) => break,
            }
        }
        if changed {
            terminal.draw(|frame| screen.draw(frame))?;
            changed = false;
        }
        if !event::poll(TICK)? {
            continue;
        }
        changed = true;
        if let Event::Key(key) = event::read()?
            && press(screen, key)
        {
            return Ok(());
        }
        every_ms.store(millis(screen.interval), Ordering::Relaxed);
    }
    Ok(())
}

/// Does what a key asks for; whether it asks for the end.
pub(super) fn press(screen: &mut Screen, key: KeyEvent) -> bool {
    if key.kind == KeyEventKind::Release {
        return false;
    }
    let now = millis(screen.interval);
    match key.code {
        KeyCode::Char('q') | KeyCode::Esc => return true,
        // The terminal is raw: the signal has to be understood here.
        KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => return true,
        KeyCode::Char('p') => screen.paused = !screen.paused,
        KeyCode::Char('+') => {
            let longer = INTERVALS_MS.into_iter().find(|it| *it > now);
            screen.interval = Duration::from_millis(longer.unwrap_or(now));
        }
        KeyCode::Char('-') => {
            let shorter = INTERVALS_MS.into_iter().rev().find(|it| *it < now);
            screen.interval = Duration::from_millis(shorter.unwrap_or(now));
        }
        _ => {}
    }
    false
}

fn millis(interval: Duration) -> u64 {
    u64::try_from(interval.as_millis())
        .unwrap_or(u64::MAX)
        .max(1)
}
