//! The promises of a writer before any chunk is read.

use std::time::{Duration, Instant};

use baler_common::transport::{RejectReason, Rejected};

use super::{confirm_all, drains, opened};
use crate::chunks::ChunkSource;
use crate::contract::{PATIENCE, TestMedium};
use crate::pump::Pump;

/// A writer starts closed: it returns an offered chunk as broken, and confirmations are an error.
pub fn offer_before_reopen_is_broken<M: TestMedium>() {
    let mut medium = M::fresh();
    let mut taps = drains(&mut medium);
    let mut writer = medium.writer();
    let chunk = ChunkSource::new(1).next(0, 100);
    let Err(Rejected {
        chunk: back,
        reason: RejectReason::Broken(error),
    }) = writer.offer(chunk.clone())
    else {
        panic!("a writer that was not opened took a chunk or gave another reason");
    };
    assert_eq!((back.ticket, &back.bytes), (chunk.ticket, &chunk.bytes));
    assert!(error.is_retryable(), "reopening helps: {error}");
    let delivery_reports = writer.delivery_reports(&mut Vec::new());
    assert!(delivery_reports.is_err(), "a closed writer says that it is");

    let mut pump = Pump::open(writer);
    pump.push([chunk]);
    confirm_all("the chunk is confirmed", &mut pump, &mut taps);
}

/// A chunk above the limit is returned unchanged, and the writer works on.
pub fn chunk_above_the_limit_is_handed_back<M: TestMedium>() {
    let (_medium, mut pump, mut taps) = opened::<M>();
    let limit = pump.writer().capability().max_chunk_bytes.get();
    let mut source = ChunkSource::new(1);
    let chunk = source.next(0, limit + 1);
    let Err(Rejected {
        chunk: back,
        reason: RejectReason::TooLarge { max_chunk_bytes },
    }) = pump.writer().offer(chunk.clone())
    else {
        panic!("a chunk above the limit was taken or another reason was given");
    };
    assert_eq!(max_chunk_bytes, limit);
    assert_eq!(back.ticket, chunk.ticket);
    assert_eq!(back.bytes, chunk.bytes);

    pump.push(source.take(1));
    confirm_all("the next chunk is confirmed", &mut pump, &mut taps);
}

/// Many chunks of several lanes: the pump checks that each ticket is confirmed once, and in order.
pub fn every_ticket_is_confirmed_exactly_once<M: TestMedium>() {
    let (_medium, mut pump, mut taps) = opened::<M>();
    let mut source = ChunkSource::new(1);
    pump.push((0..500_u32).map(|at| source.next(at % 3, 100)));
    confirm_all("all is confirmed", &mut pump, &mut taps);
    assert_eq!((pump.confirmed(), pump.breaks()), (500, 0));
    let mut late = Vec::new();
    assert!(pump.writer().delivery_reports(&mut late).is_ok());
    assert!(late.is_empty(), "confirmed again: {late:?}");
}

/// A full window returns the chunk, and notifies when it opens.
pub fn full_window_hands_back_and_notifies_when_it_opens<M: TestMedium>() {
    let (mut medium, mut pump, mut taps) = opened::<M>();
    let capability = pump.writer().capability();
    let (window_chunks, window_bytes) = (capability.window_chunks, capability.window_bytes);
    medium.stall();
    let chunks = window_chunks.get().min(window_bytes.get() / 100) + 1;
    let mut source = ChunkSource::new(1);
    pump.push((0..chunks).map(|_| source.next(0, 100)));
    pump.step();
    assert_eq!(
        pump.pending(),
        1,
        "exactly the window of {window_chunks} chunks and {window_bytes} bytes is taken"
    );
    assert_eq!(pump.confirmed(), 0, "nothing is confirmed while stalled");
    while pump.wait(Duration::from_millis(1)) {}

    medium.resume();
    let by = Instant::now() + PATIENCE;
    while !pump.wait(Duration::from_millis(1)) {
        assert!(
            Instant::now() < by,
            "no notification though the peer goes on"
        );
        for tap in &mut taps {
            tap.poll(Duration::from_millis(1));
        }
    }
    confirm_all("the rest is taken", &mut pump, &mut taps);
    assert_eq!((pump.confirmed(), pump.breaks()), (chunks, 0));
}

/// A window can be full of bytes before it is full of chunks.
pub fn window_counts_bytes<M: TestMedium>() {
    let (mut medium, mut pump, mut taps) = opened::<M>();
    let capability = pump.writer().capability();
    let window_bytes = capability.window_bytes.get();
    let bytes = capability.max_chunk_bytes.get().min(window_bytes / 3);
    let fit = window_bytes / bytes;
    assert!(
        fit < capability.window_chunks.get(),
        "give the medium a smaller window of bytes"
    );
    medium.stall();
    let mut source = ChunkSource::new(1);
    pump.push((0..fit + 2).map(|_| source.next(0, bytes)));
    pump.step();
    assert_eq!(
        pump.pending(),
        2,
        "{fit} chunks of {bytes} bytes fit into a window of {window_bytes} bytes"
    );
    medium.resume();
    confirm_all("the rest is taken", &mut pump, &mut taps);
    assert_eq!((pump.confirmed(), pump.breaks()), (fit + 2, 0));
}

/// An owner that does not wait for confirmations is notified when a full window opens. It is
/// notified of the other confirmations once it waits again. So an owner that acts only on
/// notifications gets every confirmation.
pub fn owner_that_stops_waiting_is_told_of_room_and_of_all_when_it_waits_again<M: TestMedium>() {
    let (_medium, mut pump, mut taps) = opened::<M>();
    pump.writer().set_awaited(false);
    let chunks = pump.writer().capability().window_chunks.get().min(200) * 3;
    let mut source = ChunkSource::new(1);
    pump.push(source.take(chunks));
    let mut go_on = |pump: &mut Pump, is_done: fn(&Pump) -> bool| {
        let by = Instant::now() + PATIENCE;
        loop {
            pump.step();
            if is_done(pump) {
                return;
            }
            while !pump.wait(Duration::from_millis(1)) {
                let (pending, unconfirmed) = (pump.pending(), pump.unconfirmed().len());
                assert!(
                    Instant::now() < by,
                    "not told: {pending} chunks wait for room, {unconfirmed} for confirmations"
                );
                for tap in &mut taps {
                    tap.poll(Duration::from_millis(1));
                }
            }
        }
    };
    go_on(&mut pump, |pump| pump.pending() == 0);
    pump.writer().set_awaited(true);
    go_on(&mut pump, Pump::is_done);
    assert_eq!((pump.confirmed(), pump.breaks()), (chunks, 0));
}
