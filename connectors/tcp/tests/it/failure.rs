//! A misbehaving network, and peers that come, go and hang.

use std::io::Read;
use std::net::TcpListener;
use std::num::{NonZeroU32, NonZeroUsize};
use std::slice;
use std::time::{Duration, Instant};

use baler_common::transport::{ChunkReader, ChunkWriter, Received, RejectReason, Settled, Verdict};
use baler_connector_tcp::{TcpConfig, TcpWriter};
use baler_connector_testkit::{
    ChunkSource, PATIENCE, Pump, Tap, TestMedium, drive, drive_pair, within_patience,
};

use crate::support::{Secrets, Tcp, config, receiver, with};
use baler_connector_testkit::hostile::{Guard, SENDER};

fn soon() -> Instant {
    Instant::now() + PATIENCE
}

#[test]
fn chunks_cut_anywhere_arrive_after_reconnecting() {
    let tcp = Tcp::fresh();
    let reader = tcp.reader_with(config(0));
    let counts = reader.stats_handle();
    let mut tap = Tap::new(Box::new(reader));
    let mut pump = Pump::open(Box::new(tcp.writer_with(|config| config)));
    let mut source = ChunkSource::new(1);
    // In a header, an identity, a small and a large container, and between frames.
    let cuts = [1, 27, 28, 50, 68, 69, 500, 1068, 1069, 9000];
    for (round, cut) in (1..).zip(cuts) {
        tcp.proxy.cut_after(cut);
        pump.push((0..20).map(|_| source.next(0, 1000)));
        drive(
            "the cut is noticed and repaired",
            slice::from_mut(&mut pump),
            slice::from_mut(&mut tap),
            |pumps, taps| {
                pumps
                    .iter()
                    .all(|pump| pump.is_done() && pump.breaks() >= round)
                    && taps.iter().all(|tap| tap.distinct() == 20 * round)
            },
        );
    }
    tap.assert_ordered();
    assert!(
        tap.damaged().is_empty(),
        "a cut is no damage: {:?}",
        tap.damaged()
    );
    assert!(counts().connections_lost > 0);
}

#[test]
fn slow_network_only_takes_longer() {
    let tcp = Tcp::fresh();
    let mut tap = Tap::new(Box::new(tcp.reader_with(config(0))));
    tcp.proxy.set_delay(Duration::from_millis(5));
    tcp.proxy.set_bytes_per_second(Some(2_000_000));
    let mut pump = Pump::open(Box::new(tcp.writer_with(|config| config)));
    let mut source = ChunkSource::new(1);
    pump.push((0..100).map(|_| source.next(0, 5000)));
    drive_pair("all arrives", &mut pump, &mut tap, |pump, tap| {
        pump.is_done() && tap.received().len() == 100
    });
    assert_eq!(pump.breaks(), 0);
}

#[test]
fn receiver_that_is_not_there_yet_is_worth_another_try() {
    let tcp = Tcp::fresh();
    let mut writer = tcp.writer_with(|config| config);
    let error = writer.reopen(soon()).unwrap_err();
    assert!(error.is_retryable(), "{error}");
    let reason = writer
        .offer(ChunkSource::new(1).next(0, 50))
        .unwrap_err()
        .reason;
    assert!(matches!(reason, RejectReason::Broken(_)));
    let _reader = tcp.reader_with(config(0));
    writer.reopen(soon()).unwrap();
}

#[test]
fn frozen_connection_is_noticed_by_both_ends() {
    let tcp = Tcp::fresh();
    let quick = |config: TcpConfig| {
        with(config, |config| {
            config.heartbeat = Duration::from_millis(200)
        })
    };
    let reader = tcp.reader_with(quick(config(0)));
    let counts = reader.stats_handle();
    let mut writer = tcp.writer_with(quick);
    writer.reopen(soon()).unwrap();
    // Longer than the allowed silence: heartbeats keep the connection.
    let start = Instant::now();
    within_patience("several heartbeats pass", || {
        writer.delivery_reports(&mut Vec::new()).unwrap();
        (start.elapsed() > Duration::from_millis(1000)).then_some(())
    });
    assert_eq!(counts().connections_lost, 0);

    tcp.proxy.set_frozen(true);
    let error = within_patience("the writer notices", || {
        writer.delivery_reports(&mut Vec::new()).err()
    });
    assert!(error.is_retryable());
    assert!(
        error.to_string().contains("nothing came for 600 ms"),
        "{error}"
    );
    within_patience("the reader notices", || {
        (counts().connections_lost == 1).then_some(())
    });
}

#[test]
fn slow_consumer_slows_the_sender_down() {
    let tcp = Tcp::fresh();
    let memory = 50_000;
    let set = |config: TcpConfig| {
        with(config, |config| {
            config.heartbeat = Duration::from_millis(200);
            config.window.chunks = NonZeroU32::new(1000).unwrap();
            config.window.bytes = NonZeroU32::new(10_000_000).unwrap();
            config.memory_bytes = NonZeroUsize::new(memory).unwrap();
        })
    };
    let reader = tcp.reader_with(set(config(0)));
    let counts = reader.stats_handle();
    let mut tap = Tap::holding(Box::new(reader), 2);
    let mut pump = Pump::open(Box::new(tcp.writer_with(set)));
    let mut source = ChunkSource::new(1);
    pump.push((0..900).map(|_| source.next(0, 10_000)));
    // Four chunks fit, and one sender may have two of them. Time passes without more chunks, and
    // heartbeats keep the connection.
    let start = Instant::now();
    within_patience("several heartbeats pass", || {
        pump.step();
        tap.poll(Duration::from_millis(5));
        (start.elapsed() > Duration::from_millis(1000)).then_some(())
    });
    assert_eq!((pump.confirmed(), pump.breaks()), (0, 0));
    assert_eq!(
        counts().chunks,
        2,
        "no more than the sender's share is read"
    );
    tap.acknowledge();
    tap.set_demand(100);
    drive_pair("all arrives", &mut pump, &mut tap, |pump, tap| {
        pump.is_done() && tap.distinct() == 900
    });
    assert_eq!((pump.breaks(), tap.received().len()), (0, 900));
}

#[test]
fn chunk_larger_than_the_memory_is_read_alone() {
    let tcp = Tcp::fresh();
    let memory = NonZeroUsize::new(1000).unwrap();
    let config = with(config(0), |config| config.memory_bytes = memory);
    let mut tap = Tap::new(Box::new(tcp.reader_with(config)));
    let mut pump = Pump::open(Box::new(tcp.writer_with(|config| config)));
    let mut source = ChunkSource::new(1);
    pump.push((0..10).map(|_| source.next(0, 20_000)));
    drive_pair("all arrives", &mut pump, &mut tap, |pump, tap| {
        pump.is_done() && tap.distinct() == 10
    });
}

#[test]
fn close_is_in_time_though_nobody_reads() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let answering = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.read_exact(&mut [0; 40]).unwrap();
        let answer = baler_connector_testkit::hostile::Hello {
            role: 2,
            max_chunk_bytes: u32::MAX,
            window_chunks: 100,
            ..SENDER
        };
        std::io::Write::write_all(&mut stream, &answer.bytes()).unwrap();
        stream
    });
    let mut writer = Box::new(TcpWriter::new(TcpConfig::new("127.0.0.1", port)));
    writer.reopen(soon()).unwrap();
    let _stream = answering.join().unwrap();
    // The answer has a window of 60,000 bytes, and one chunk may always be in flight. That is far
    // more than the buffers of the sockets.
    let chunk = ChunkSource::new(1).next(0, 16 << 20);
    writer.offer(chunk).unwrap();
    let start = Instant::now();
    let report = writer.close(start + Duration::from_millis(200));
    assert_eq!(report.unconfirmed, [0]);
    assert!(report.error.is_some());
    assert!(start.elapsed() < Duration::from_secs(5));
}

#[test]
fn delivery_of_a_lost_connection_is_stale_and_comes_again() {
    let tcp = Tcp::fresh();
    let reader = tcp.reader_with(config(0));
    let counts = reader.stats_handle();
    let mut tap = Tap::holding(Box::new(reader), 8);
    let mut pump = Pump::open(Box::new(tcp.writer_with(|config| config)));
    pump.push(ChunkSource::new(1).take(1));
    drive_pair("it is held", &mut pump, &mut tap, |_, tap| {
        tap.unsettled().len() == 1
    });
    tcp.proxy.cut();
    within_patience("the cut is noticed", || {
        (counts().connections_lost == 1).then_some(())
    });
    let label = tap.unsettled()[0];
    assert_eq!(tap.settle(label, Verdict::Ack).1, Settled::Stale);
    tap.acknowledge();
    drive_pair("it comes again", &mut pump, &mut tap, |pump, _| {
        pump.is_done()
    });
    assert_eq!(tap.received(), [label, label]);
}

#[test]
fn chunks_of_a_sender_that_died_are_still_delivered() {
    let tcp = Tcp::fresh();
    let reader = tcp.reader_with(config(0));
    let counts = reader.stats_handle();
    let mut writer = tcp.writer_with(|config| config);
    writer.reopen(soon()).unwrap();
    for chunk in ChunkSource::new(1).take(5) {
        writer.offer(chunk).unwrap();
    }
    within_patience("they are on the other side", || {
        (counts().chunks == 5).then_some(())
    });
    drop(writer);
    within_patience("the end is noticed", || {
        (counts().connections_lost == 1).then_some(())
    });
    let mut tap = Tap::new(Box::new(reader));
    while tap.poll(Duration::from_millis(20)) {}
    assert_eq!(tap.distinct(), 5);
}

#[test]
fn closing_receiver_says_bye_and_confirms_what_is_settled() {
    let reader = receiver(config(0));
    let mut writer = Box::new(TcpWriter::new(config(reader.local_addr().port())));
    writer.reopen(soon()).unwrap();
    for chunk in ChunkSource::new(1).take(3) {
        writer.offer(chunk).unwrap();
    }
    let mut tap = Tap::holding(Box::new(reader), 3);
    within_patience("all is held", || {
        tap.poll(Duration::from_millis(5));
        (tap.unsettled().len() == 3).then_some(())
    });
    let [first, second, third] = tap.unsettled().try_into().unwrap();
    tap.settle(third, Verdict::Ack);
    tap.settle(first, Verdict::Ack);
    tap.settle(second, Verdict::Reject);
    let (_, report) = tap.close(soon());
    assert_eq!(report.unsettled, 0);
    let mut delivery_reports = Vec::new();
    let error = within_patience("the end is told", || {
        writer.delivery_reports(&mut delivery_reports).err()
    });
    let tickets: Vec<u64> = delivery_reports.iter().map(|known| known.ticket).collect();
    assert_eq!(tickets, [0, 1, 2], "acknowledged before the end");
    assert!(error.to_string().contains("closing"), "{error}");
    assert!(error.is_retryable());
}

#[test]
fn half_open_connection_keeps_its_sender_out_for_a_moment_at_most() {
    let secrets = Secrets::new();
    // With a token this works at once, however long the old connection may be silent.
    let cases = [
        (Guard::None, Duration::from_millis(200)),
        (Guard::Token, Duration::from_secs(600)),
    ];
    for (guard, heartbeat) in cases {
        let tcp = Tcp::fresh();
        let config = with(secrets.config(guard, 0), |config| {
            config.heartbeat = heartbeat
        });
        let reader = tcp.reader_with(config);
        let mut tap = Tap::new(Box::new(reader));
        let port = tcp.proxy.address().port();
        let open = || Pump::open(Box::new(TcpWriter::new(secrets.config(guard, port))));
        let mut source = ChunkSource::new(1);
        let mut old = open();
        old.push(source.take(5));
        drive_pair("chunks arrive", &mut old, &mut tap, |old, _| old.is_done());
        tcp.proxy.abandon();
        let mut new = open();
        new.push(source.take(5));
        drive_pair("the sender is let in", &mut new, &mut tap, |new, tap| {
            new.is_done() && tap.distinct() == 10
        });
    }
}

#[test]
fn sender_with_the_producer_of_a_live_one_is_told_why_it_is_refused() {
    let mut reader = receiver(config(0));
    let counts = reader.stats_handle();
    let port = reader.local_addr().port();
    let open = |source: &mut ChunkSource| {
        let mut writer = TcpWriter::new(config(port));
        writer.reopen(soon()).unwrap();
        writer.offer(source.next(0, 100)).unwrap();
        writer
    };
    let live = open(&mut ChunkSource::new(1));
    within_patience("it holds the producer", || {
        (counts().chunks == 1).then_some(())
    });
    let mut other = open(&mut ChunkSource::new(1));
    let error = within_patience("the other one is refused", || {
        other.delivery_reports(&mut Vec::new()).err()
    });
    assert!(error.is_retryable(), "the live one may go: {error}");
    assert!(error.to_string().contains("the same token_file"), "{error}");
    reader.set_demand(0);
    let Received::Damaged(damaged) = reader.receive(soon()).unwrap() else {
        panic!("a refused sender is named");
    };
    assert!(
        damaged
            .reason
            .contains("is sending over the connection tcp://127.0.0.1:")
    );
    assert_eq!((counts().connections_refused, counts().chunks), (1, 1));
    // The producer is free as soon as its connection ends.
    drop(live);
    within_patience("the other one is let in", || {
        other.reopen(soon()).ok()?;
        other.offer(ChunkSource::new(1).next(0, 100)).ok()?;
        within_patience("it is taken or refused", || {
            let refused = other.delivery_reports(&mut Vec::new()).is_err();
            (refused || counts().chunks == 2).then_some(())
        });
        (counts().chunks == 2).then_some(())
    });
}
