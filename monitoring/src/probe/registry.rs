//! All call sites that were ever entered, and whether calls of them are recorded.
//!
//! A site registers itself at its first call, gets a permanent number, and learns whether it is
//! active. From then on a call reads only the state of its own site. These decide that state: the
//! installed controller, whether it is enabled, its patterns, the verdicts of the other end of its
//! writer, and the sites that it samples. They are passed to the registry, which sets the state of
//! every site. All states are set under one lock, so the last decision stays. A call that begins
//! meanwhile may still see the previous state, once.

use std::cell::Cell;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use baler_common::record::Interned;
use baler_connector_kieker::pattern::PatternList;

use crate::clock::tag_of;
use crate::controller;
use crate::queue::{self, Inside};

use super::published;
use super::site::{OFF, RECORDED_AND_SAMPLED, RECORDED_SLOWLY, SAMPLED, Site, SiteNumber, UNKNOWN};

static REGISTRY: Mutex<Registry> = Mutex::new(Registry {
    entries: Vec::new(),
    tag: OFF,
    patterns: None,
    verdicts: None,
    sampled: None,
    new_part: Part::Recorded,
    changes: 0,
});

thread_local! {
    /// Whether this thread is at work here. Code that it calls meanwhile (for example an allocator
    /// with probes) must not wait for it.
    static AT_WORK: Cell<bool> = const { Cell::new(false) };
}

struct Registry {
    /// A site's number is its position plus one.
    entries: Vec<Entry>,
    /// The tag of the installed controller's queues if it accepts records, otherwise [`OFF`].
    tag: u32,
    /// The controller's patterns; `None` until there was a controller.
    patterns: Option<Arc<PatternList>>,
    /// The verdicts of the other end of its writer, by position; a site without one may record.
    verdicts: Option<Arc<Vec<bool>>>,
    /// The sites that are sampled; `None` while none is.
    sampled: Option<Arc<PatternList>>,
    /// What hybrid monitoring allows new sites; without it everything.
    new_part: Part,
    /// The number of changes of the two lists of patterns.
    changes: u64,
}

/// What hybrid monitoring allows a site at present, if patterns and verdicts allow it as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(
    not(feature = "sampling"),
    expect(dead_code, reason = "there is no hybrid monitoring")
)]
pub(crate) enum Part {
    #[default]
    Off,
    /// Calls are published and counted, but not recorded.
    Published,
    /// Calls are recorded, too.
    Recorded,
}

#[derive(Clone, Copy)]
struct Entry {
    site: &'static Site,
    /// Whether the patterns let it record.
    is_active: bool,
    is_sampled: bool,
    part: Part,
    /// Whether there may be calls that are sampled, but not recorded. Such a call must not end on
    /// the fast path, where it would be recorded. So the site never takes the fast path again.
    is_slow: bool,
}

impl Registry {
    /// Sets the state of the site at this position; returns whether calls are recorded.
    fn set_state(&mut self, index: usize) -> Option<bool> {
        let verdict = self.verdicts.as_ref().and_then(|it| it.get(index));
        let is_allowed = verdict.is_none_or(|it| *it);
        let entry = self.entries.get_mut(index)?;
        Some(entry.set_state(self.tag, is_allowed))
    }

    /// Allows sites these parts, by position, and all others and new ones the same; sets all states.
    fn set_parts(&mut self, parts: &[Part], others: Part) {
        self.new_part = others;
        for (index, entry) in self.entries.iter_mut().enumerate() {
            entry.part = parts.get(index).copied().unwrap_or(others);
            // The sampler of threads must see the end of each call whose begin it saw.
            entry.is_slow |= entry.part != Part::Recorded;
        }
        self.set_states();
    }

    fn set_states(&mut self) {
        for index in 0..self.entries.len() {
            self.set_state(index);
        }
    }
}

impl Entry {
    /// Judges a site by the patterns of recorded and of sampled ones. The signature is made only if
    /// there are patterns, or samples.
    fn judge(&mut self, patterns: Option<&PatternList>, sampled: Option<&PatternList>) {
        let site = self.site;
        let matches = |list: &PatternList| list.is_active(site.signature().as_str());
        self.is_active = patterns.is_none_or(|it| it.is_empty() || matches(it));
        self.is_sampled = site.can_be_sampled() && sampled.is_some_and(matches);
    }

    /// Sets the state of the site, which the other end allows to record, or not. Returns whether
    /// calls are recorded.
    fn set_state(&mut self, tag: u32, is_allowed: bool) -> bool {
        let is_recorded = tag != OFF && self.is_active && is_allowed && self.part == Part::Recorded;
        let is_sampled = tag != OFF && self.is_sampled && self.part != Part::Off;
        let state = match (is_recorded, is_sampled) {
            (false, false) => OFF,
            (false, true) => SAMPLED,
            (true, true) => RECORDED_AND_SAMPLED,
            (true, false) if self.is_slow => RECORDED_SLOWLY,
            (true, false) => tag,
        };
        self.is_slow |= state == SAMPLED;
        self.site.set_state(state);
        is_recorded
    }
}

impl Site {
    /// Returns the site's number if calls are recorded; one relaxed load, except for the first
    /// call.
    #[inline]
    pub(super) fn active(&'static self) -> Option<SiteNumber> {
        match self.state() {
            OFF => None,
            #[cfg(feature = "sampling")]
            SAMPLED => None,
            UNKNOWN => register(self),
            _ => self.number(),
        }
    }
}

/// Registers a site and sets its state. Returns its number if it is active.
///
/// A call made while the same thread is at work here is lost, and its site stays unregistered.
#[cold]
fn register(site: &'static Site) -> Option<SiteNumber> {
    let registered = with_registry(|registry| {
        let number = match site.number() {
            // Another thread's first call came earlier.
            Some(number) => number,
            None => {
                let number = SiteNumber::new(registry.entries.len() + 1)?;
                let mut entry = Entry {
                    site,
                    is_active: true,
                    is_sampled: false,
                    part: registry.new_part,
                    is_slow: registry.new_part != Part::Recorded,
                };
                entry.judge(registry.patterns.as_deref(), registry.sampled.as_deref());
                registry.entries.push(entry);
                site.set_number(number);
                number
            }
        };
        registry.set_state(number.index())?.then_some(number)
    });
    registered.unwrap_or_else(|| {
        queue::count_reentrant(controller::active_key());
        None
    })
}

/// Sets the key of the queues into which calls are recorded, 0 for none, the patterns, the verdicts
/// of the other end, and the sites that are sampled. This sets the state of every site.
///
/// Only one thread at a time may call it. Patterns are matched without the lock, so that first
/// calls of other sites need not wait.
pub(crate) fn set_recording(
    key: u64,
    patterns: &Arc<PatternList>,
    verdicts: Arc<Vec<bool>>,
    sampled: Option<Arc<PatternList>>,
) {
    let to_judge = with_registry(|registry| {
        registry.tag = if key == 0 { OFF } else { tag_of(key) };
        registry.verdicts = Some(verdicts);
        let before = registry.patterns.replace(Arc::clone(patterns));
        let sampled_before = std::mem::replace(&mut registry.sampled, sampled.clone());
        let is_resampled = !is_same(sampled_before.as_ref(), sampled.as_ref());
        if is_same(before.as_ref(), Some(patterns)) && !is_resampled {
            registry.set_states();
            return None;
        }
        registry.changes = registry.changes.wrapping_add(1);
        Some((registry.changes, registry.entries.clone(), is_resampled))
    });
    let Some((changes, mut entries, is_resampled)) = to_judge.flatten() else {
        return;
    };
    for entry in &mut entries {
        entry.judge(Some(patterns), sampled.as_deref());
    }
    with_registry(|registry| {
        if registry.changes == changes {
            // Sites that were registered meanwhile used these patterns already.
            for (entry, judged) in registry.entries.iter_mut().zip(entries) {
                entry.is_active = judged.is_active;
                entry.is_sampled = judged.is_sampled;
            }
            registry.set_states();
        }
    });
    if is_resampled {
        published::choose_anew();
    }
}

fn is_same(one: Option<&Arc<PatternList>>, other: Option<&Arc<PatternList>>) -> bool {
    one.map(Arc::as_ptr) == other.map(Arc::as_ptr)
}

/// Returns the sites from this position on.
pub(crate) fn sites(from: usize) -> Vec<&'static Site> {
    let sites = with_registry(|registry| {
        let entries = registry.entries.iter().skip(from);
        entries.map(|entry| entry.site).collect()
    });
    sites.unwrap_or_default()
}

/// Returns the signatures of the sites from this position on.
pub(crate) fn signatures(from: usize) -> Vec<&'static str> {
    // Without the lock, as below.
    let sites = sites(from).into_iter();
    sites.map(|site| site.signature().as_str()).collect()
}

/// Sets what hybrid monitoring allows: the sites in the order of their numbers, and all others.
#[cfg(feature = "sampling")]
pub(crate) fn set_parts(parts: &[Part], others: Part) {
    with_registry(|registry| registry.set_parts(parts, others));
}

/// Returns the signature of the site with this number, if there is one.
pub(super) fn signature(number: SiteNumber) -> Option<Interned> {
    let site = with_registry(|registry| Some(registry.entries.get(number.index())?.site))??;
    // Without the lock: the first call makes the signature.
    Some(site.signature())
}

/// Marks this thread as at work here, until the guard is dropped.
struct ReentranceGuard;

impl Drop for ReentranceGuard {
    fn drop(&mut self) {
        AT_WORK.set(false);
    }
}

/// While it lives, no other thread can register sites or switch them.
pub(crate) struct RegistryHold(MutexGuard<'static, Registry>);

/// The caller must be inside.
pub(crate) fn hold_registry() -> RegistryHold {
    RegistryHold(REGISTRY.lock().unwrap_or_else(PoisonError::into_inner))
}

impl RegistryHold {
    /// From now on nothing is recorded at any site. Hybrid monitoring ends: it belongs to the
    /// parent of a fork.
    pub(crate) fn switch_off(&mut self) {
        self.0.tag = OFF;
        self.0.set_parts(&[], Part::Recorded);
    }
}

/// Runs with the registry; `None` if this thread is at work here already.
fn with_registry<T>(run: impl FnOnce(&mut Registry) -> T) -> Option<T> {
    if AT_WORK.replace(true) {
        return None;
    }
    let _at_work = ReentranceGuard;
    let _inside = Inside::enter();
    let mut registry = hold_registry();
    Some(run(&mut registry.0))
}

#[cfg(test)]
mod tests;
