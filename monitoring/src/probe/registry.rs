//! All call sites that were ever entered, and whether calls of them are recorded.
//!
//! A site enters itself here at its first call, gets a number that it keeps, and is told whether it
//! is active; from then on it looks at nothing but its own state.
//! Whatever decides about that (the installed controller, whether it is enabled) is told to the
//! registry, which then sets the state of every site.
//! All states are set under one lock, so the last decision is the one that stays; a call that begins
//! meanwhile may still see the one before, once.

use std::cell::Cell;
use std::sync::{Mutex, MutexGuard, PoisonError};

use baler_common::record::Interned;

use super::site::{Site, SiteNumber};

static REGISTRY: Mutex<Registry> = Mutex::new(Registry {
    sites: Vec::new(),
    is_recording: false,
});

thread_local! {
    /// Whether this thread is at work here: what it calls meanwhile (an allocator with probes, say)
    /// must not wait for it.
    static BUSY: Cell<bool> = const { Cell::new(false) };
}

struct Registry {
    /// A site's number is its position plus one.
    sites: Vec<&'static Site>,
    /// Whether there is an installed controller and it takes records.
    is_recording: bool,
}

/// Enters a site and tells it its state; its number, if it is active.
///
/// A call made while the same thread is at work here stays unrecorded, and its site unknown.
#[cold]
pub(super) fn register(site: &'static Site) -> Option<SiteNumber> {
    let mut registry = lock()?;
    let number = match site.number() {
        Some(number) => number,
        None => {
            registry.sites.push(site);
            let number = SiteNumber::new(registry.sites.len())?;
            site.set_number(number);
            number
        }
    };
    let is_active = registry.is_recording;
    site.set_active(number, is_active);
    is_active.then_some(number)
}

/// Says whether anything is recorded at all, and tells every site.
pub(crate) fn set_recording(is_recording: bool) {
    let Some(mut registry) = lock() else {
        return;
    };
    registry.is_recording = is_recording;
    for site in &registry.sites {
        if let Some(number) = site.number() {
            site.set_active(number, is_recording);
        }
    }
}

/// The signature of the site with this number, if there is one.
#[cfg_attr(
    not(test),
    expect(dead_code, reason = "for rows that name their site by its number")
)]
pub(crate) fn signature(number: SiteNumber) -> Option<Interned> {
    let site = {
        let registry = lock()?;
        *registry.sites.get(number.index())?
    };
    // Without the lock: at the first time the signature is made.
    Some(site.signature())
}

struct Locked {
    registry: MutexGuard<'static, Registry>,
}

/// `None` if this thread has it already.
fn lock() -> Option<Locked> {
    if BUSY.replace(true) {
        return None;
    }
    Some(Locked {
        registry: REGISTRY.lock().unwrap_or_else(PoisonError::into_inner),
    })
}

impl std::ops::Deref for Locked {
    type Target = Registry;

    fn deref(&self) -> &Registry {
        &self.registry
    }
}

impl std::ops::DerefMut for Locked {
    fn deref_mut(&mut self) -> &mut Registry {
        &mut self.registry
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        BUSY.set(false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// There is one registry in a process, and `cargo test` runs many tests in one.
    fn alone() -> MutexGuard<'static, ()> {
        static ALONE: Mutex<()> = Mutex::new(());
        ALONE.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[test]
    fn sites_are_numbered_once_and_switched_together() {
        static FIRST: Site = Site::named("registry.first()");
        static SECOND: Site = Site::named("registry.second()");
        let _alone = alone();
        set_recording(false);
        assert!(FIRST.is_unknown());
        assert_eq!(FIRST.active(), None);
        assert!(!FIRST.is_unknown());
        let number = FIRST.number().unwrap();

        set_recording(true);
        assert_eq!(FIRST.active(), Some(number));
        let second = SECOND.active().unwrap();
        assert_ne!(second, number);
        assert_eq!(signature(number).unwrap().as_str(), "registry.first()");
        assert_eq!(signature(second).unwrap().as_str(), "registry.second()");

        set_recording(false);
        assert_eq!(SECOND.active(), None);
        set_recording(true);
        assert_eq!(SECOND.active(), Some(second));
    }

    #[test]
    fn a_site_entered_by_the_registry_itself_waits_for_another_call() {
        static SITE: Site = Site::named("registry.within()");
        let _alone = alone();
        set_recording(true);
        let locked = lock();
        assert_eq!(SITE.active(), None);
        assert!(SITE.is_unknown());
        drop(locked);
        assert!(SITE.active().is_some());
    }
}
