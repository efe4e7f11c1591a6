//! A signal handler that emits and calls a function with a probe, on a thread that does the same.
//! Its records may be dropped. They are counted, corrupt nothing and block no thread.

#![cfg(all(target_arch = "x86_64", target_os = "linux"))]
#![expect(
    unsafe_code,
    reason = "handlers are registered, and threads are interrupted, by unsafe functions alone"
)]

use std::arch::asm;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use baler_common::container::LossReason;
use baler_common::record::timing::DurationRecord;
use baler_common::record::{Record, RecordBatch};
use baler_connector_kieker::container;
use baler_monitoring::{Overflow, emit, probe, suppress};
use libc::SIGTRAP;

use super::recording::{execution, of_type, one_at_a_time};
use crate::support::{Medium, Mode, PATIENCE, plain};

/// The record that the loop and the handler emit.
#[derive(Debug, Clone, Copy, PartialEq, Record)]
#[record(name = "test.Mark")]
struct Mark {
    is_handler: bool,
    number: u64,
    /// The number's complement. If two emits mixed their fields, they would not match.
    complement: u64,
}

fn mark(is_handler: bool, number: u64) -> Mark {
    Mark {
        is_handler,
        number,
        complement: !number,
    }
}

#[probe]
fn interrupted() {}

#[probe(record = duration)]
fn interrupted_briefly() {}

#[probe]
fn handled() {}

#[probe(record = duration)]
fn handled_briefly() {}

/// The number of records of one round of [`work`].
const OF_EACH: u64 = 3;

fn work(number: u64) {
    interrupted();
    interrupted_briefly();
    emit(&mark(false, number));
}

static HANDLED: AtomicU64 = AtomicU64::new(0);
static SUPPRESSES: AtomicBool = AtomicBool::new(false);

fn handle() {
    let number = HANDLED.fetch_add(1, Ordering::Relaxed);
    let _suppressed = SUPPRESSES.load(Ordering::Relaxed).then(suppress);
    handled();
    handled_briefly();
    emit(&mark(true, number));
}

/// Checks that every record is in exactly one place, and whole. Returns the handler's lost records.
fn check(rounds: u64, batches: &[RecordBatch], lost: u64) {
    let handled = HANDLED.load(Ordering::Relaxed);
    let (mut own, mut others) = (0, 0);
    let records = batches.iter().flat_map(RecordBatch::records);
    for call in records.filter(|it| it.schema().name().ends_with("OperationExecutionRecord")) {
        let call = execution(call);
        assert!(call.tin <= call.tout, "{call:?}");
        match call.operation() {
            "interrupted" => own += 1,
            "handled" => others += 1,
            _ => panic!("{call:?}"),
        }
    }
    assert_eq!(own, rounds, "a record of the thread itself is never lost");

    let durations: Vec<DurationRecord> = of_type(batches);
    let own = durations
        .iter()
        .filter(|it| it.operation_signature.contains("interrupted_briefly"));
    let own = u64::try_from(own.count()).unwrap();
    assert_eq!(own, rounds);
    others += u64::try_from(durations.len()).unwrap() - own;

    let marks: Vec<Mark> = of_type(batches);
    assert!(marks.iter().all(|it| it.complement == !it.number));
    let numbers: Vec<_> = marks
        .iter()
        .filter(|it| !it.is_handler)
        .map(|it| it.number)
        .collect();
    assert!(numbers.into_iter().eq(0..rounds));
    others += u64::try_from(marks.len()).unwrap() - rounds;

    assert_eq!(others + lost, OF_EACH * handled);
}

/// Runs rounds with the handler registered. Returns how many records were dropped because they
/// interrupted another one.
fn run(rounds: impl FnOnce() -> u64) -> u64 {
    let _alone = one_at_a_time();
    HANDLED.store(0, Ordering::Relaxed);
    let medium = Medium::new(Mode::Prompt);
    let controller = plain(medium.writer(64))
        .overflow(Overflow::Block)
        .start()
        .unwrap();
    controller.install();
    // SAFETY: the handler does what monitoring says that a handler may do.
    let registered = unsafe { signal_hook::low_level::register(SIGTRAP, handle) }.unwrap();
    let rounds = rounds();
    signal_hook::low_level::unregister(registered);
    let report = controller.shutdown(PATIENCE);
    assert!(report.adds_up(), "{report}");
    let lost = report.dropped().get(LossReason::Reentrant);
    assert_eq!(report.dropped().total(), lost, "{report}");
    let mut decoder = container::decoder();
    let chunks = medium.chunks();
    let batches: Vec<_> = chunks
        .iter()
        .map(|chunk| decoder.decode(&chunk.bytes).unwrap().batch)
        .collect();
    check(rounds, &batches, lost);
    lost
}

/// Does everything that is done once, such as naming a type: a handler would wait for it.
fn warm_up() {
    work(0);
    handle();
}

/// The processor's trap flag interrupts the thread after each instruction.
#[test]
fn a_handler_that_interrupts_an_emit_neither_corrupts_nor_blocks_and_is_counted() {
    const ROUNDS: u64 = 3;
    for suppresses in [false, true] {
        SUPPRESSES.store(suppresses, Ordering::Relaxed);
        let lost = run(|| {
            warm_up();
            for number in 1..ROUNDS {
                // SAFETY: sets the flag, which changes nothing but that the handler is called.
                unsafe { asm!("pushfq", "or qword ptr [rsp], 0x100", "popfq") };
                work(number);
                // SAFETY: clears the flag.
                unsafe { asm!("pushfq", "and qword ptr [rsp], ~0x100", "popfq") };
            }
            ROUNDS
        });
        assert!(lost > 0, "no record was interrupted");
    }
    SUPPRESSES.store(false, Ordering::Relaxed);
}
