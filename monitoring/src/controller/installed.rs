//! The process-wide controller.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use baler_common::record::{Record, RowWriter};

use super::Controller;
use crate::collector::{Shared, ShutdownReport};
use crate::queue;

/// Whether there is one and it is enabled.
static ACTIVE: AtomicBool = AtomicBool::new(false);

/// Counts installations, so that threads notice a new one without a lock.
static INSTALLATIONS: AtomicU64 = AtomicU64::new(0);

static INSTALLED: RwLock<Option<Controller>> = RwLock::new(None);

/// Held while call sites are told what is recorded, so that of two threads that switch the later one
/// does not tell what was before; the patterns are tried meanwhile, without [`INSTALLED`].
static TELLING: Mutex<()> = Mutex::new(());

thread_local! {
    /// The controller that this thread has seen last, and which installation that was.
    static SEEN: RefCell<Option<(u64, Arc<Shared>)>> = const { RefCell::new(None) };
}

pub(super) fn install(controller: Controller) -> Option<Controller> {
    let _telling = TELLING.lock().unwrap_or_else(PoisonError::into_inner);
    let mut installed = INSTALLED.write().unwrap_or_else(PoisonError::into_inner);
    let before = installed.replace(controller.clone());
    INSTALLATIONS.fetch_add(1, Ordering::Release);
    drop(installed);
    tell(&controller);
    before
}

/// Brings up to date what probes look at, if this is the installed controller.
pub(crate) fn refresh_active(shared: &Arc<Shared>) {
    let _telling = TELLING.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(controller) = installed().filter(|it| Arc::ptr_eq(it.shared(), shared)) {
        tell(&controller);
    }
}

/// Says what is recorded: to [`emit`], to calls that end, and to every call site.
fn tell(controller: &Controller) {
    let is_enabled = controller.shared().is_enabled();
    ACTIVE.store(is_enabled, Ordering::Relaxed);
    #[cfg(feature = "enable")]
    crate::probe::set_recording(is_enabled, controller.switch().verdicts());
}

/// The process-wide controller, if one was installed.
pub fn installed() -> Option<Controller> {
    let installed = INSTALLED.read().unwrap_or_else(PoisonError::into_inner);
    installed.clone()
}

/// Whether a record emitted now would be taken; one relaxed load.
#[inline]
pub(crate) fn is_active() -> bool {
    ACTIVE.load(Ordering::Relaxed)
}

/// Emits a record to the process-wide controller; whether it was taken.
pub fn emit<R: Record>(record: &R) -> bool {
    is_active()
        && with_shared(|shared| {
            let timestamp = record.timestamp().unwrap_or_else(|| shared.clock.unix_ns());
            let push = |row: &mut RowWriter<'_>| record.write_fields(row);
            shared.is_enabled() && queue::push(&shared.queues, R::schema(), timestamp, push)
        })
        .unwrap_or(false)
}

/// Shuts the process-wide controller down, if there is one; see [`Controller::shutdown`].
///
/// For the ways out of a program that have no handle: a signal's thread, a panic hook, the line
/// before [`std::process::exit`]. All of them may call it, in any order.
pub fn shutdown_installed(timeout: Duration) -> Option<ShutdownReport> {
    installed().map(|controller| controller.shutdown(timeout))
}

/// Hands the process-wide controller, if there is one, to `use_it`; without a lock once the thread
/// has seen it.
pub(crate) fn with_shared<T>(use_it: impl FnOnce(&Arc<Shared>) -> T) -> Option<T> {
    let mut use_it = Some(use_it);
    let done = SEEN.try_with(|seen| {
        // Borrowed mutably only to learn of an installation, so that a record may be emitted
        // while another one is built.
        let current = INSTALLATIONS.load(Ordering::Acquire);
        let is_current = |seen: &Option<(u64, Arc<Shared>)>| {
            seen.as_ref().is_some_and(|(number, _)| *number == current)
        };
        if !seen.try_borrow().is_ok_and(|seen| is_current(&seen))
            && let Ok(mut seen) = seen.try_borrow_mut()
        {
            *seen = find().map(|shared| (current, shared));
        }
        let seen = seen.try_borrow().ok()?;
        let (_, shared) = seen.as_ref().filter(|(number, _)| *number == current)?;
        use_it.take().map(|use_it| use_it(shared))
    });
    if let Ok(Some(done)) = done {
        return Some(done);
    }
    // The thread's storage is gone, or another controller was installed while a record was built.
    let shared = find()?;
    use_it.map(|use_it| use_it(&shared))
}

fn find() -> Option<Arc<Shared>> {
    installed().map(|controller| Arc::clone(controller.shared()))
}
