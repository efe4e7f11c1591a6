//! Monitoring in the child of a fork.
//!
//! A child has one thread, the one that forked, and a copy of its parent's memory. A lock that another
//! thread held at that moment stays locked in the copy for ever. Therefore:
//!
//! - Locks that all controllers of a process share are held during the fork by the thread that forks,
//!   which gives them back in the parent and in the child (`pthread_atfork`).
//! - Locks of the parent's controllers are never taken in the child: every path to one checks
//!   [`Process::is_other`] first.
//! - Data that is made once a process is made before a fork can find it half made
//!   ([`prepare_statics`]). Schemas of the application's own types are the exception.
//! - In the child all call sites are off until it installs a controller of its own.

use std::sync::atomic::{AtomicU32, Ordering};

/// The number of forks between the first process with a controller and this one.
static FORKS: AtomicU32 = AtomicU32::new(0);

/// A process, to distinguish a parent from its child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Process(u32);

impl Process {
    /// Returns this process. From now on its forks are noticed.
    pub(crate) fn this() -> Self {
        watch();
        Self(FORKS.load(Ordering::Relaxed))
    }

    /// Whether the calling thread runs in another process, a child of this one; one relaxed load.
    #[inline]
    pub(crate) fn is_other(self) -> bool {
        self.0 != FORKS.load(Ordering::Relaxed)
    }
}

#[cfg(unix)]
mod handlers {
    #![expect(
        unsafe_code,
        reason = "the standard library does not know `pthread_atfork`"
    )]

    use std::cell::Cell;
    use std::ffi::c_int;
    use std::sync::Once;
    use std::sync::atomic::Ordering;

    use baler_common::container::{ChunkHeader, ChunkSerializer as _, NativeSerializer};
    use baler_common::record::timing::{
        AggregatedDurationRecord, AsyncOperationExecutionRecord, DurationRecord,
    };
    use baler_common::record::{BatchBuilder, Interned, InternerHold, Record as _};
    use baler_common::transport::{ChunkIdentity, Epoch, ProducerId};
    use baler_connector_kieker::types::{EmptyRecord, WELL_KNOWN_TYPES};

    use super::FORKS;
    use crate::clock;
    use crate::controller::{self, InstalledHold};
    use crate::probe::{self, CellsHold, RegistryHold};
    use crate::queue::{self, Inside};
    #[cfg(feature = "sampling")]
    use crate::sampling::{self, StacksHold, ThreadSample};
    use crate::trace;

    // SAFETY: as POSIX declares it.
    unsafe extern "C" {
        fn pthread_atfork(
            prepare: Option<extern "C" fn()>,
            parent: Option<extern "C" fn()>,
            child: Option<extern "C" fn()>,
        ) -> c_int;
    }

    /// The locks that all controllers share, in the order in which other threads take them.
    struct SharedLocks {
        _installed: InstalledHold,
        registry: RegistryHold,
        cells: CellsHold,
        #[cfg(feature = "sampling")]
        stacks: StacksHold,
        _interner: InternerHold,
        _inside: Inside,
    }

    thread_local! {
        /// The locks that this thread holds while it forks.
        static HELD: Cell<Option<SharedLocks>> = const { Cell::new(None) };
    }

    /// Registers the handlers, once.
    pub(super) fn watch() {
        static ONCE: Once = Once::new();
        // Miri does not know the function, and without the feature nothing is recorded.
        if cfg!(miri) || !cfg!(feature = "enable") {
            return;
        }
        ONCE.call_once(|| {
            prepare_statics();
            // SAFETY: the handlers neither panic nor unwind, and stay as long as the program.
            let result = unsafe { pthread_atfork(Some(prepare), Some(in_parent), Some(in_child)) };
            // It fails only for lack of memory. Forks then go unnoticed.
            debug_assert_eq!(result, 0);
        });
    }

    /// Initializes the statics that monitoring needs.
    fn prepare_statics() {
        probe::no_session();
        DurationRecord::schema();
        AggregatedDurationRecord::schema();
        AsyncOperationExecutionRecord::schema();
        #[cfg(feature = "sampling")]
        ThreadSample::schema();
        // The first chunk makes the table of Kieker's types.
        let mut batch = BatchBuilder::new();
        let header = ChunkHeader::new(ChunkIdentity {
            producer: ProducerId::new(0),
            epoch: Epoch {
                start_unix_ns: 0,
                random: 0,
            },
            lane: 0,
            sequence: 0,
        });
        batch.push(&EmptyRecord {}).ok();
        let mut serializer = NativeSerializer::default().with_well_known_types(&WELL_KNOWN_TYPES);
        drop(serializer.serialize(batch.batch(), &header, &mut Vec::new()));
    }

    extern "C" fn prepare() {
        // A thread that is inside already (in a signal handler that forks, or in an allocator) may
        // hold one of the locks itself.
        let Some(inside) = Inside::enter() else {
            return;
        };
        let locks = SharedLocks {
            _installed: controller::hold_installed(),
            registry: probe::hold_registry(),
            cells: probe::hold_cells(),
            #[cfg(feature = "sampling")]
            stacks: sampling::hold_stacks(),
            _interner: Interned::hold(),
            _inside: inside,
        };
        // A thread whose storage is gone releases them at once.
        HELD.try_with(|held| held.set(Some(locks))).ok();
    }

    /// Takes the locks that this thread holds, if any.
    fn held() -> Option<SharedLocks> {
        HELD.try_with(Cell::take).ok().flatten()
    }

    extern "C" fn in_parent() {
        drop(held());
    }

    /// Neither allocates nor frees memory: not every allocator can do that here.
    extern "C" fn in_child() {
        FORKS.fetch_add(1, Ordering::Relaxed);
        controller::stop_recording();
        clock::forget_published();
        let Some(mut locks) = held() else {
            queue::disown();
            return;
        };
        locks.registry.switch_off();
        locks.cells.forget();
        #[cfg(feature = "sampling")]
        locks.stacks.forget();
        queue::forget_block();
        trace::forget_ids();
    }
}

#[cfg(unix)]
use handlers::watch;

/// There is no fork, or nothing for which a child could wait.
#[cfg(not(unix))]
fn watch() {}
