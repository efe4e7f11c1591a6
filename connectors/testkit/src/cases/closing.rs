//! Closing meets its deadline, and accounts for every chunk.

use std::time::{Duration, Instant};

use super::{GRACE, opened};
use crate::chunks::ChunkSource;
use crate::contract::TestMedium;
use crate::pump::Pump;
use crate::tap::{Tap, drive, drive_pair};

/// Every offered chunk is confirmed, during the close if not before, and confirmed chunks arrive. A
/// spool that closes before its medium is open keeps its chunks for its next life.
pub fn close_flushes_what_was_offered<M: TestMedium>() {
    let (_medium, mut pump, mut taps) = opened::<M>();
    let chunks = pump.writer().capability().window_chunks.get().min(8);
    pump.push(ChunkSource::new(1).take(chunks));
    pump.step();
    assert_eq!(pump.pending(), 0, "the window takes {chunks} chunks");
    // The writer may close only after the peer settles, so it closes on its own thread.
    let (pump, report) = std::thread::scope(|scope| {
        let closing = scope.spawn(move || pump.close(Instant::now() + GRACE * 4));
        while !closing.is_finished() {
            for tap in &mut taps {
                tap.poll(Duration::from_millis(1));
            }
        }
        closing.join().expect("the writer closes")
    });
    assert!(report.error.is_none(), "{:?}", report.error);
    assert_eq!((pump.confirmed(), report.unconfirmed.len()), (chunks, 0));
    drive("all arrives", &mut [], &mut taps, |_, taps| {
        let sent = chunks - pump.spooled();
        taps.iter().all(|tap| tap.distinct() >= sent)
    });
}

/// The peer is stuck: the writer gives up at its deadline and names the chunks in doubt.
pub fn close_accounts_for_what_a_stuck_peer_holds<M: TestMedium>() {
    let (mut medium, mut pump, taps) = opened::<M>();
    medium.stall();
    pump.push(ChunkSource::new(1).take(3));
    pump.step();
    let start = Instant::now();
    let time = Duration::from_millis(300);
    // The pump checks that the report names every ticket that is not confirmed.
    let (_, report) = pump.close(start + time);
    assert_eq!(report.unconfirmed, [0, 1, 2]);
    assert!(start.elapsed() >= time, "it gave up early");
    assert!(start.elapsed() < time + GRACE, "it overslept its deadline");
    drop(taps);
}

/// A reader closes in time and reports the number of unsettled chunks.
pub fn reader_closes_within_its_deadline<M: TestMedium>() {
    let mut medium = M::fresh();
    let mut tap = Tap::holding(medium.reader(), 3);
    let mut pump = Pump::open(medium.writer());
    pump.push(ChunkSource::new(1).take(3));
    drive_pair("three are held", &mut pump, &mut tap, |_, tap| {
        tap.unsettled().len() == 3
    });
    let start = Instant::now();
    let time = Duration::from_millis(500);
    let (_, report) = tap.close(start + time);
    assert!(start.elapsed() < time + GRACE, "it overslept its deadline");
    assert_eq!(report.unsettled, 3);
}

/// A writer that was never opened closes at once.
pub fn unopened_writer_closes_at_once<M: TestMedium>() {
    let mut medium = M::fresh();
    let writer = medium.writer();
    let start = Instant::now();
    let report = writer.close(start + GRACE * 10);
    assert!(start.elapsed() < GRACE, "it waited for nothing");
    assert!(report.delivery_reports.is_empty() && report.unconfirmed.is_empty());
}
