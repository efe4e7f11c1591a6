//! Chunks survive retries, restarts and broken connections.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use baler_common::transport::{ChunkWriter, Notify, Order, Settled, Token, Verdict};

use crate::chunks::{ChunkSource, Label};
use crate::contract::{PATIENCE, TestMedium, within_patience};
use crate::pump::Pump;
use crate::tap::{Tap, drive_pair};

/// Writes chunks and receives them without settling: as many as fit the window, at most 8.
fn held<M: TestMedium>(medium: &mut M) -> (Pump, Tap) {
    let reader = medium.reader();
    assert!(reader.capability().redelivers);
    let mut tap = Tap::holding(reader, 64);
    let mut pump = Pump::open(medium.writer());
    let chunks = pump.writer().capability().window_chunks.get().min(8);
    assert!(chunks >= 4, "give the medium a window of at least 4 chunks");
    pump.push(ChunkSource::new(1).take(chunks));
    drive_pair("all is held", &mut pump, &mut tap, |_, tap| {
        tap.unsettled().len() == chunks
    });
    (pump, tap)
}

/// Drives until all is confirmed and nothing more comes for a moment.
fn finish(mut pump: Pump, mut tap: Tap) -> Tap {
    tap.acknowledge();
    drive_pair("all is confirmed", &mut pump, &mut tap, |pump, _| {
        pump.is_done()
    });
    while tap.poll(Duration::from_millis(50)) {}
    tap
}

/// A retried chunk is delivered again, with the same bytes. Then it can be acknowledged.
pub fn retried_chunk_is_delivered_again<M: TestMedium>() {
    let mut medium = M::fresh();
    let (mut pump, mut tap) = held(&mut medium);
    let (first, second) = match tap.unsettled().as_slice() {
        [first, second, ..] => (*first, *second),
        _ => panic!("fewer than two chunks are held"),
    };
    let before = tap.received().len();
    assert_eq!(tap.settle(second, Verdict::Retry).1, Settled::Done);
    assert_eq!(tap.settle(first, Verdict::Retry).1, Settled::Done);
    drive_pair("both come again", &mut pump, &mut tap, |_, tap| {
        tap.received().len() == before + 2
    });
    let again: HashSet<Label> = tap.received().iter().skip(before).copied().collect();
    assert_eq!(again, HashSet::from([first, second]));
    let tap = finish(pump, tap);
    assert_eq!(
        tap.received().len(),
        before + 2,
        "acknowledged chunks came again"
    );
}

/// A rejection is final, for this reader and after a restart.
pub fn rejected_chunk_is_not_delivered_again<M: TestMedium>() {
    let mut medium = M::fresh();
    let (pump, mut tap) = held(&mut medium);
    let before = tap.received().len();
    for label in tap.unsettled() {
        assert_eq!(tap.settle(label, Verdict::Reject).1, Settled::Done);
    }
    let tap = finish(pump, tap);
    assert_eq!(tap.received().len(), before, "a rejected chunk came again");
    let (_, report) = tap.close(Instant::now() + Duration::from_secs(2));
    assert_eq!(report.unsettled, 0);
    let mut restarted = Tap::new(medium.reader());
    while restarted.poll(Duration::from_millis(50)) {}
    assert!(
        restarted.received().is_empty(),
        "a rejected chunk came again"
    );
}

/// A token that was settled, or never given, is stale; that is no error.
pub fn stale_token_is_told<M: TestMedium>() {
    let mut medium = M::fresh();
    let (pump, mut tap) = held(&mut medium);
    let label = tap.unsettled().first().copied();
    let label = label.expect("several chunks are held");
    let (token, settled) = tap.settle(label, Verdict::Ack);
    assert_eq!(settled, Settled::Done);
    for token in [token, Token(u64::MAX - 7)] {
        for verdict in [Verdict::Ack, Verdict::Retry, Verdict::Reject] {
            let settled = tap.reader().settle(token, verdict);
            assert!(
                matches!(settled, Ok(Settled::Stale)),
                "{token:?}, settled again with {verdict:?}: {settled:?}"
            );
        }
    }
    finish(pump, tap);
}

/// Chunks that a reader received and did not settle come again when it is restarted.
pub fn unsettled_chunks_come_again_after_restart<M: TestMedium>() {
    let mut medium = M::fresh();
    let (mut pump, tap) = held(&mut medium);
    let unsettled = tap.unsettled();
    // Dropped, not closed: as after a crash.
    drop(tap);
    let mut restarted = Tap::new(medium.reader());
    let chunks = unsettled.len();
    drive_pair("all comes again", &mut pump, &mut restarted, |pump, tap| {
        pump.is_done() && tap.distinct() == chunks
    });
}

/// Chunks are settled out of order. After a restart, all unsettled chunks come again.
pub fn watermark_never_passes_an_unsettled_chunk<M: TestMedium>() {
    let mut medium = M::fresh();
    let (mut pump, mut tap) = held(&mut medium);
    // Settle all but the second and the last but one, the later ones first.
    let held = tap.unsettled();
    let kept: HashSet<Label> = [held.get(1), held.get(held.len() - 2)]
        .into_iter()
        .flatten()
        .copied()
        .collect();
    for label in held.iter().rev().filter(|label| !kept.contains(label)) {
        assert_eq!(tap.settle(*label, Verdict::Ack).1, Settled::Done);
    }
    let (_, report) = tap.close(Instant::now() + Duration::from_secs(2));
    assert_eq!(report.unsettled, kept.len());
    let mut restarted = Tap::new(medium.reader());
    let what = "what was not settled comes again";
    drive_pair(what, &mut pump, &mut restarted, |pump, tap| {
        pump.is_done() && kept.iter().all(|label| tap.received().contains(label))
    });
}

/// The connection breaks again and again. After go-back-N every chunk has arrived at least once,
/// and the first deliveries are in order.
pub fn broken_connection_loses_nothing<M: TestMedium>() {
    let mut medium = M::fresh();
    let mut tap = Tap::new(medium.reader());
    let mut pump = Pump::open(medium.writer());
    let mut source = ChunkSource::new(1);
    for round in 1..=5 {
        pump.push(source.take(100));
        let some = round * 100 - 60;
        drive_pair("some arrive", &mut pump, &mut tap, |_, tap| {
            tap.distinct() >= some
        });
        medium.break_connections();
        // A writer with a connection for each request notices a break only if one is on its way.
        drive_pair("the break is noticed", &mut pump, &mut tap, |pump, _| {
            pump.breaks() >= round || pump.is_done()
        });
    }
    drive_pair("all arrives", &mut pump, &mut tap, |pump, tap| {
        pump.is_done() && tap.distinct() == 500
    });
    assert_eq!(pump.confirmed(), 500);
    if tap.reader().capability().order == Order::PerLane {
        tap.assert_ordered();
    }
}

/// A panic on the writer's thread is an error with its text. A new thread delivers after that.
pub fn panic_of_the_thread_breaks_the_writer<M: TestMedium>() {
    let mut medium = M::fresh();
    // Some media confirm what a reader has settled.
    let mut tap = medium.is_readable().then(|| Tap::new(medium.reader()));
    let mut read = || {
        if let Some(tap) = &mut tap {
            tap.poll(Duration::ZERO);
        }
    };
    let mut writer = medium.writer();
    writer
        .reopen(Instant::now() + PATIENCE)
        .expect("the writer opens");
    break_by_a_panic(writer.as_mut(), &mut read);
    let mut pump = Pump::open(writer);
    pump.push(ChunkSource::new(2).take(4));
    within_patience("all is confirmed after the panic", || {
        read();
        pump.step();
        pump.is_done().then_some(())
    });
}

/// Makes the thread of an open writer panic, and waits for the error. Calls `read` meanwhile.
///
/// # Panics
///
/// No error comes, or it does not have the panic's text.
pub fn break_by_a_panic(writer: &mut dyn ChunkWriter, mut read: impl FnMut()) {
    writer.set_notify(Arc::new(PanicOnce::default()));
    let offered = writer.offer(ChunkSource::new(1).next(0, 100));
    offered.expect("there is room for a chunk");
    let error = within_patience("the panic is an error", || {
        read();
        writer.delivery_reports(&mut Vec::new()).err()
    });
    assert!(error.to_string().contains(PANIC), "{error}");
}

const PANIC: &str = "the test asked for a panic";

/// Panics when it is notified first.
#[derive(Default)]
struct PanicOnce(AtomicBool);

impl Notify for PanicOnce {
    fn notify(&self) {
        assert!(self.0.swap(true, Ordering::AcqRel), "{PANIC}");
    }
}
