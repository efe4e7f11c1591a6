//! The process-wide controller.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockWriteGuard};
use std::time::Duration;

use baler_common::mutex::lock;
use baler_common::record::Record;

use super::Controller;
use crate::clock::{has_wall_time, system_unix_ns};
use crate::collector::{ControllerState, ShutdownReport};
use crate::queue::{self, Inside, QueueSet};

/// The key of the installed controller's queues; 0 if there is none or it is disabled. One load
/// shows whether a record is accepted, whether the thread's block belongs to this controller, and
/// which clock to read.
static ACTIVE: AtomicU64 = AtomicU64::new(0);

static INSTALLED: RwLock<Option<Controller>> = RwLock::new(None);

/// Held while call sites are switched, so that a thread cannot publish a state that another thread
/// has replaced. Patterns are matched under this lock, without [`INSTALLED`].
static PUBLISHING: Mutex<()> = Mutex::new(());

impl Controller {
    /// Makes it the process-wide controller, which probes and [`emit`](crate::emit) use. Returns
    /// the previous one.
    pub fn install(&self) -> Option<Self> {
        // A signal handler that emits would wait for the locks, here and below.
        let _inside = Inside::enter();
        let InstalledHold {
            _publishing,
            mut installed,
        } = hold_installed();
        let before = installed.replace(self.clone());
        drop(installed);
        publish(self);
        before
    }
}

/// While it lives, no other thread can install or look up a controller.
pub(crate) struct InstalledHold {
    _publishing: MutexGuard<'static, ()>,
    installed: RwLockWriteGuard<'static, Option<Controller>>,
}

/// The caller must be inside.
pub(crate) fn hold_installed() -> InstalledHold {
    InstalledHold {
        _publishing: lock(&PUBLISHING),
        installed: INSTALLED.write().unwrap_or_else(PoisonError::into_inner),
    }
}

/// From now on nothing is recorded: for the child of a fork. Takes no lock.
#[cfg(unix)]
pub(crate) fn stop_recording() {
    ACTIVE.store(0, Ordering::Relaxed);
}

/// Updates the state that probes read, if this is the installed controller.
pub(crate) fn refresh_active(shared: &Arc<ControllerState>) {
    let _inside = Inside::enter();
    let _publishing = lock(&PUBLISHING);
    if let Some(controller) = installed().filter(|it| Arc::ptr_eq(it.shared(), shared)) {
        publish(&controller);
    }
}

/// Publishes which calls are recorded: to [`emit`], to calls that end, and to every call site.
fn publish(controller: &Controller) {
    let shared = controller.shared();
    if shared.is_forked() {
        // Its patterns are behind a lock that must not be taken here.
        ACTIVE.store(0, Ordering::Relaxed);
        crate::probe::hold_registry().switch_off();
        return;
    }
    let is_enabled = shared.is_enabled();
    let key = if is_enabled { shared.queues.key() } else { 0 };
    ACTIVE.store(key, Ordering::Relaxed);
    let switch = controller.switch();
    let patterns = switch.list();
    #[cfg(feature = "sampling")]
    let sampled = controller.sampled_sites(&patterns);
    #[cfg(not(feature = "sampling"))]
    let sampled = None;
    crate::probe::set_recording(key, &patterns, switch.verdicts(), sampled);
}

/// Returns the process-wide controller, if one was installed.
pub fn installed() -> Option<Controller> {
    let _inside = Inside::enter();
    let installed = INSTALLED.read().unwrap_or_else(PoisonError::into_inner);
    installed.clone()
}

/// Returns the key of the process-wide controller's queues if a record emitted now would be
/// accepted, otherwise 0. One relaxed load.
#[inline]
pub(crate) fn active_key() -> u64 {
    ACTIVE.load(Ordering::Relaxed)
}

/// Returns the process-wide controller if it is enabled. Takes a lock.
///
/// It may be another one than the caller has found active. That one was then replaced meanwhile,
/// and records belong to its successor.
pub(crate) fn active_shared() -> Option<Arc<ControllerState>> {
    let _inside = Inside::enter();
    let installed = INSTALLED.read().unwrap_or_else(PoisonError::into_inner);
    let shared = installed.as_ref()?.shared();
    shared.is_enabled().then(|| Arc::clone(shared))
}

/// Returns the queues of the process-wide controller if it is enabled. Takes a lock.
pub(crate) fn active_queues() -> Option<Arc<QueueSet>> {
    active_shared().map(|shared| Arc::clone(&shared.queues))
}

/// Returns the present time in nanoseconds since the Unix epoch, by the clock of the controller
/// whose queues have this key.
pub(crate) fn active_unix_ns(key: u64) -> i64 {
    if has_wall_time(key) {
        system_unix_ns()
    } else {
        active_shared().map_or(0, |shared| shared.clock.unix_ns())
    }
}

/// Emits a record to the process-wide controller; returns whether it was accepted.
#[inline]
pub fn emit<R: Record>(record: &R) -> bool {
    if !cfg!(feature = "enable") {
        return false;
    }
    let key = active_key();
    if key == 0 {
        return false;
    }
    let timestamp = record.timestamp().unwrap_or_else(|| active_unix_ns(key));
    queue::push_record(key, active_queues, record, timestamp)
}

/// Shuts the process-wide controller down, if there is one; see [`Controller::shutdown`].
///
/// For exits of a program that have no handle: a signal's thread, a panic hook, the line before
/// [`std::process::exit`]. All of them may call it, in any order.
pub fn shutdown_installed(timeout: Duration) -> Option<ShutdownReport> {
    installed().map(|controller| controller.shutdown(timeout))
}
