//! Calls that the sampler of threads can see while they run.

#[cfg(feature = "sampling")]
use std::sync::atomic::{AtomicBool, Ordering};

use super::site::Site;
#[cfg(feature = "sampling")]
pub(super) use crate::sampling::choose_anew;

/// Publishes a call, or a poll of an asynchronous one, until it is dropped.
#[derive(Debug)]
pub(super) struct Published(Option<&'static Site>);

impl Published {
    pub(super) fn begin(site: &'static Site) -> Self {
        // Whether it is recorded does not matter: its end is always published.
        Self(site.publish(true).then_some(site))
    }
}

impl Drop for Published {
    fn drop(&mut self) {
        if let Some(site) = self.0 {
            site.unpublish();
        }
    }
}

/// Whether published calls are counted, as hybrid monitoring needs. It publishes so few calls that
/// threads hardly ever write to a site's counter at once.
#[cfg(feature = "sampling")]
static COUNTS: AtomicBool = AtomicBool::new(false);

#[cfg(feature = "sampling")]
pub(crate) fn count_calls(counts: bool) {
    COUNTS.store(counts, Ordering::Relaxed);
}

#[cfg(feature = "sampling")]
impl Site {
    /// Publishes that the thread begins a call, if the site is sampled; returns whether it is.
    pub(super) fn publish(&self, is_recorded: bool) -> bool {
        let operation = || {
            if COUNTS.load(Ordering::Relaxed) {
                self.count();
            }
            self.signature().number()
        };
        crate::sampling::enter(|| self.is_sampled(is_recorded).then(operation))
    }

    /// Publishes that the thread ends a call, if its begin was published.
    pub(super) fn unpublish(&self) {
        crate::sampling::leave(|| self.signature().number());
    }
}

/// Without the feature `sampling` nothing is published.
#[cfg(not(feature = "sampling"))]
impl Site {
    pub(super) const fn publish(&self, _is_recorded: bool) -> bool {
        false
    }

    pub(super) const fn unpublish(&self) {}
}

#[cfg(not(feature = "sampling"))]
pub(super) const fn choose_anew() {}
