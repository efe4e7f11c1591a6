//! Emitted records go nowhere and cost nothing, and a controller is empty.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use baler_common::transport::{
    Capability, Chunk, ChunkWriter, CloseReport, DeliveryReport, Durability, Notify, Order,
    Rejected, TransportError,
};
use baler_monitoring::{Controller, installed, shutdown_installed};
use baler_off_test::{Beat, emitted};

/// Counts allocations.
struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: it is the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: as for this function.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: as for this function.
        unsafe { System.dealloc(at, layout) }
    }
}

/// No code may call it.
struct Untouchable(Capability);

impl ChunkWriter for Untouchable {
    fn capability(&self) -> &Capability {
        &self.0
    }

    fn offer(&mut self, _: Chunk) -> Result<(), Rejected> {
        panic!("a chunk was offered");
    }

    fn delivery_reports(&mut self, _: &mut Vec<DeliveryReport>) -> Result<(), TransportError> {
        panic!("confirmations were asked for");
    }

    fn set_notify(&mut self, _: std::sync::Arc<dyn Notify>) {
        panic!("it was told whom to wake");
    }

    fn reopen(&mut self, _: Instant) -> Result<(), TransportError> {
        panic!("it was opened");
    }

    fn close(self: Box<Self>, _: Instant) -> CloseReport {
        panic!("it was closed");
    }
}

fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").map_or(0, Iterator::count)
}

/// One test: a second one beside it would allocate and have a thread.
#[test]
fn a_controller_starts_no_thread_and_what_is_emitted_costs_nothing() {
    let threads_before = threads();
    let capability = Capability::new("untouchable", Order::PerLane, Durability::Received);
    let controller = Controller::builder(Box::new(Untouchable(capability)))
        .pattern_file("/nowhere")
        .start()
        .unwrap();
    assert!(controller.install().is_none());
    assert_eq!(threads(), threads_before);
    let beat = Beat {
        number: 1,
        text: "a".repeat(10_000),
    };
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    for _ in 0..1_000 {
        assert!(!emitted(&controller, &beat));
    }
    assert_eq!(ALLOCATIONS.load(Ordering::Relaxed), before);
    controller.enable();
    assert!(!controller.is_enabled());
    assert!(!emitted(&controller, &beat));
    // It returns even without any time.
    controller.flush(Duration::ZERO).unwrap();
    let stats = controller.stats();
    assert_eq!((stats.emitted, stats.dropped.total()), (0, 0));
    let report = shutdown_installed(Duration::ZERO).unwrap();
    assert!(report.on_time && report.error.is_none() && report.adds_up());
    assert_eq!(report.emitted(), 0);
    assert!(installed().is_some());
    assert_eq!(threads(), threads_before);
    assert_no_collector_is_linked();
}

/// The linker leaves out unused functions. The name of the collector's thread belongs to its code.
fn assert_no_collector_is_linked() {
    let program = std::fs::read(std::env::current_exe().unwrap()).unwrap();
    let name = ["baler", "collector"].join("-");
    let found = program.windows(name.len()).any(|it| it == name.as_bytes());
    assert!(!found, "the code that starts {name} is linked");
}
