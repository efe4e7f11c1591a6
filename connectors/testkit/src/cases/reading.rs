//! The promises of a reader.

use std::collections::HashSet;
use std::slice;
use std::time::{Duration, Instant};

use baler_common::transport::{Order, Received};

use super::{GRACE, SEVERAL, pair};
use crate::chunks::ChunkSource;
use crate::contract::{TestMedium, within_patience};
use crate::pump::Pump;
use crate::tap::{Tap, drive, drive_pair};

/// The capabilities of both ends agree with each other and with the medium.
pub fn capability_is_consistent<M: TestMedium>() {
    let mut medium = M::fresh();
    let reader = medium.reader();
    let mut pump = Pump::open(medium.writer());
    let capability = pump.writer().capability();
    assert_eq!(capability.medium, reader.capability().medium);
    assert_eq!(capability.readable, medium.is_readable());
    if capability.readable {
        assert!(
            capability.max_chunk_bytes <= reader.capability().max_chunk_bytes,
            "a reader takes what its writer sends"
        );
    }
}

/// A reader of an empty medium is idle until its deadline, or returns its end.
pub fn empty_medium_is_idle_or_ends<M: TestMedium>() {
    let mut medium = M::fresh();
    let mut reader = medium.reader();
    reader.set_demand(8);
    let start = Instant::now();
    let time = Duration::from_millis(50);
    match reader.receive(start + time) {
        Ok(Received::Idle) => assert!(start.elapsed() >= time, "it did not wait"),
        Ok(Received::End) => {
            assert!(reader.capability().ends, "it ended though it never does");
            let again = reader.receive(Instant::now() + time);
            assert!(matches!(again, Ok(Received::End)), "an end is final");
        }
        // Returned once, before the first chunk.
        Ok(Received::Assigned { .. }) => {}
        other => panic!("from an empty medium: {other:?}"),
    }
    assert!(start.elapsed() < time + GRACE, "it overslept its deadline");
}

/// Once all chunks are confirmed, each chunk can be read exactly once. The reader then reports that
/// it is at the end.
pub fn everything_confirmed_is_readable<M: TestMedium>() {
    let mut medium = M::fresh();
    let (mut pump, mut tap) = pair(&mut medium);
    pump.push(ChunkSource::new(1).take(1000));
    drive_pair("all arrives", &mut pump, &mut tap, |pump, tap| {
        pump.is_done() && tap.distinct() == 1000
    });
    within_patience("it is at the end", || {
        tap.poll(Duration::from_millis(10));
        tap.waits_for().is_none().then_some(())
    });
    assert_eq!(
        tap.received().len(),
        1000,
        "nothing failed, nothing comes twice"
    );
    assert!(tap.damaged().is_empty());
}

/// Chunks of interleaved lanes come in the order of each lane.
pub fn order_is_kept_in_each_lane<M: TestMedium>() {
    let mut medium = M::fresh();
    let (mut pump, mut tap) = pair(&mut medium);
    assert_eq!(tap.reader().capability().order, Order::PerLane);
    let mut source = ChunkSource::new(1);
    pump.push((0..600_u32).map(|number| {
        let bytes = 30 + number as usize % 400;
        source.next(number * number % 5, bytes)
    }));
    drive_pair("all arrives", &mut pump, &mut tap, |pump, tap| {
        pump.is_done() && tap.distinct() == 600
    });
    tap.assert_ordered();
}

/// The largest and the smallest chunk pass.
pub fn chunk_at_the_limit_passes<M: TestMedium>() {
    let mut medium = M::fresh();
    let (mut pump, mut tap) = pair(&mut medium);
    let limit = pump.writer().capability().max_chunk_bytes.get();
    let mut source = ChunkSource::new(1);
    let sizes = [limit, 20, limit - 1, limit];
    pump.push(sizes.map(|bytes| source.next(0, bytes)));
    drive_pair("all arrives", &mut pump, &mut tap, |pump, tap| {
        pump.is_done() && tap.distinct() == 4
    });
    assert_eq!((pump.confirmed(), pump.breaks()), (4, 0));
}

/// Several writers write at the same time; the order of each writer's lane is kept.
pub fn many_writers_reach_one_reader<M: TestMedium>() {
    let mut medium = M::fresh();
    let mut tap = Tap::new(medium.reader());
    let mut pumps: Vec<Pump> = (1..)
        .take(SEVERAL)
        .map(|producer| {
            let mut pump = Pump::open(medium.writer());
            pump.push(ChunkSource::new(producer).take(100));
            pump
        })
        .collect();
    let chunks = 100 * SEVERAL;
    drive(
        "all arrives",
        &mut pumps,
        slice::from_mut(&mut tap),
        |pumps, taps| {
            pumps.iter().all(Pump::is_done) && taps.iter().all(|tap| tap.distinct() == chunks)
        },
    );
    assert_eq!(tap.received().len(), chunks);
    if tap.reader().capability().order == Order::PerLane {
        tap.assert_ordered();
    }
}

/// With demand 0 nothing is handed out; with demand 2, two chunks until one is settled.
pub fn paused_reader_gets_nothing<M: TestMedium>() {
    let mut medium = M::fresh();
    let mut tap = Tap::holding(medium.reader(), 0);
    let mut pump = Pump::open(medium.writer());
    pump.push(ChunkSource::new(1).take(4));
    for _ in 0..20 {
        pump.step();
        tap.poll(Duration::from_millis(5));
    }
    assert!(tap.received().is_empty(), "a paused reader got a chunk");
    tap.set_demand(2);
    drive_pair("two come", &mut pump, &mut tap, |_, tap| {
        tap.received().len() == 2
    });
    // The tap fails when it gets more chunks than it demands.
    for _ in 0..10 {
        pump.step();
        tap.poll(Duration::from_millis(5));
    }
    tap.acknowledge();
    drive_pair("the rest comes", &mut pump, &mut tap, |pump, tap| {
        pump.is_done() && tap.distinct() == 4
    });
}

/// Several readers share the chunks: each goes to one of them, and none is missing.
pub fn readers_share_the_chunks<M: TestMedium>() {
    let mut medium = M::fresh();
    let mut taps: Vec<Tap> = (0..SEVERAL).map(|_| Tap::new(medium.reader())).collect();
    // A group that still assigns its partitions may deliver chunks again.
    drive("all readers have joined", &mut [], &mut taps, |_, taps| {
        taps.iter().all(|tap| tap.waits_for().is_none())
    });
    let mut pump = Pump::open(medium.writer());
    let mut source = ChunkSource::new(1);
    pump.push((0..400_u32).map(|at| source.next(at % 8, 64)));
    let received = |taps: &[Tap]| taps.iter().map(|tap| tap.received().len()).sum::<usize>();
    drive(
        "all arrives",
        slice::from_mut(&mut pump),
        &mut taps,
        |pumps, taps| pumps.iter().all(Pump::is_done) && received(taps) >= 400,
    );
    let distinct: HashSet<_> = taps.iter().flat_map(Tap::received).collect();
    assert_eq!((distinct.len(), received(&taps)), (400, 400));
}
