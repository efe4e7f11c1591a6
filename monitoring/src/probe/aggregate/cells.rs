//! All cells, and their owners.

use std::cell::{Cell as Slot, RefCell};
use std::collections::HashMap;
use std::ptr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{AccessError, LocalKey};

use super::super::site::SiteNumber;
use super::cell::{CallTotals, Cell};
use crate::queue::Inside;

/// Cells are never freed, so that a thread may keep a plain reference to its own. There are as many
/// cells as threads were at a site at once.
static CELLS: Mutex<Option<Cells>> = Mutex::new(None);

#[derive(Default)]
struct Cells {
    all: Vec<&'static Cell>,
    /// Cells without an owner, by site.
    free: HashMap<SiteNumber, Vec<&'static Cell>>,
}

/// A thread's reference to its cell of one site: a thread-local variable beside the site.
///
/// It has no destructor, so that reading it needs no check. It is emptied when the thread ends.
#[derive(Debug)]
pub struct CellSlot(Slot<&'static Cell>);

/// The cell of a thread without one, so that a call need not check. Nothing is ever added to it:
/// its owner would have to start over first, and it has no owner.
#[cfg(not(all(test, baler_loom)))]
const fn placeholder() -> &'static Cell {
    static PLACEHOLDER: Cell = Cell::with(SiteNumber::FIRST, None);
    &PLACEHOLDER
}

/// Models have no thread-local cells.
#[cfg(all(test, baler_loom))]
const fn placeholder() -> &'static Cell {
    loop {}
}

/// The cells that a thread owns.
struct ThreadCells(RefCell<Vec<(SiteNumber, &'static Cell, &'static LocalKey<CellSlot>)>>);

thread_local! {
    static THREAD_CELLS: ThreadCells = const { ThreadCells(RefCell::new(Vec::new())) };
}

impl Drop for ThreadCells {
    fn drop(&mut self) {
        let _inside = Inside::enter();
        let mine = self.0.take();
        for (_, _, slot) in &mine {
            slot.with(|slot| slot.0.set(placeholder()));
        }
        with_cells(|cells| {
            for (site, cell, _) in mine {
                cells.free.entry(site).or_default().push(cell);
            }
        });
    }
}

impl CellSlot {
    /// Creates a slot without a cell.
    #[cfg_attr(
        feature = "enable",
        expect(clippy::new_without_default, reason = "made in a constant only")
    )]
    pub const fn new() -> Self {
        Self(Slot::new(placeholder()))
    }

    /// Returns the thread's cell, or the placeholder, to which nothing can be added.
    #[inline(always)]
    pub(super) fn cell(&self) -> &'static Cell {
        self.0.get()
    }

    /// Returns the thread's cell, if it has one.
    pub(super) fn own(&self) -> Option<&'static Cell> {
        let cell = self.0.get();
        (!ptr::eq(cell, placeholder())).then_some(cell)
    }
}

impl Cells {
    /// Returns a cell without an owner, with all content that its last owner has left.
    fn find(&mut self, site: SiteNumber, has_histogram: bool) -> &'static Cell {
        if let Some(cell) = self.free.get_mut(&site).and_then(Vec::pop) {
            return cell;
        }
        let cell: &'static Cell = Box::leak(Box::new(Cell::new(site, has_histogram)));
        self.all.push(cell);
        cell
    }
}

/// Runs with all cells. The caller must be inside, so that no code that this thread calls meanwhile
/// (for example an allocator with probes) waits for the lock.
fn with_cells<T>(run: impl FnOnce(&mut Cells) -> T) -> T {
    let mut cells = lock();
    run(cells.get_or_insert_with(Cells::default))
}

fn lock() -> MutexGuard<'static, Option<Cells>> {
    CELLS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// While it lives, no other thread can get a cell.
#[cfg(unix)]
pub(crate) struct CellsHold(MutexGuard<'static, Option<Cells>>);

/// The caller must be inside.
#[cfg(unix)]
pub(crate) fn hold_cells() -> CellsHold {
    CellsHold(lock())
}

#[cfg(unix)]
impl CellsHold {
    /// In the child of a fork: forgets all cells, which belong to the parent, and frees nothing.
    pub(crate) fn forget(&mut self) {
        std::mem::forget(self.0.take());
        let forget = |mine: &ThreadCells| {
            let mine = mine.0.take();
            for (_, _, slot) in &mine {
                slot.with(|slot| slot.0.set(placeholder()));
            }
            std::mem::forget(mine);
        };
        THREAD_CELLS.try_with(forget).ok();
    }
}

/// Gives this thread a cell of a site. All calls of a site have a histogram, or none has. The
/// caller must be inside.
///
/// # Errors
///
/// The thread is about to end and cannot keep a cell.
pub(super) fn own_cell(
    site: SiteNumber,
    has_histogram: bool,
    slot: &'static LocalKey<CellSlot>,
) -> Result<&'static Cell, AccessError> {
    THREAD_CELLS.try_with(|mine| {
        let cell = with_cells(|cells| cells.find(site, has_histogram));
        slot.with(|slot| slot.0.set(cell));
        mine.0.borrow_mut().push((site, cell, slot));
        cell
    })
}

/// Runs with a cell of a site that has no owner. The caller must be inside.
pub(super) fn with_spare_cell(
    site: SiteNumber,
    has_histogram: bool,
    run: impl FnOnce(&'static Cell),
) {
    with_cells(|cells| {
        let cell = cells.find(site, has_histogram);
        run(cell);
        cells.free.entry(site).or_default().push(cell);
    });
}

/// Takes from each cell the totals since the last time for the queues with this key. Passes them
/// with the number of the site.
pub(crate) fn take_all(key: u64, mut take: impl FnMut(usize, CallTotals)) {
    let all = {
        let _inside = Inside::enter();
        lock().as_ref().map(|cells| cells.all.clone())
    };
    for cell in all.into_iter().flatten() {
        cell.take(key, &mut |site, content| take(site.index() + 1, content));
    }
}
