//! A deactivated probe allocates nothing, and neither does one that is switched on and off.
//!
//! A separate test binary, because it counts every allocation of its thread.

#![cfg(all(test, feature = "enable"))]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::time::Duration;

use baler_connector_null::{NullConfig, NullWriter};
use baler_monitoring::{Controller, enter};

/// Counts what each thread allocates.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

#[expect(unsafe_code, reason = "an allocator cannot be written without")]
// SAFETY: every call is handed on to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller's promises are the system allocator's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn call() {
    let _probe = enter!("shop.Till.open()");
}

fn allocations_of_calls() -> u64 {
    let before = ALLOCATIONS.get();
    for _ in 0..1_000 {
        call();
    }
    ALLOCATIONS.get() - before
}

#[test]
fn deactivated_calls_allocate_nothing() {
    // The first call registers the site.
    call();
    assert_eq!(allocations_of_calls(), 0, "without a controller");
    let builder = Controller::builder(Box::new(NullWriter::new(NullConfig::default())));
    let controller = builder.start().unwrap();
    controller.install();
    // Now the thread's queue is created.
    call();
    let emitted = controller.stats().emitted;
    for pattern in ["shop.Till.*()", "*"] {
        controller.activate("*").unwrap();
        controller.deactivate(pattern).unwrap();
        assert_eq!(allocations_of_calls(), 0, "{pattern}");
    }
    assert_eq!(controller.stats().emitted, emitted);
    controller.shutdown(Duration::from_secs(10));
}
