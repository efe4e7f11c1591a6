//! A receiver and hostile bytes at its port.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::num::{NonZeroU32, NonZeroUsize};
use std::time::{Duration, Instant};

use baler_common::transport::{ChunkReader, Damaged, Received};
use baler_connector_tcp::{TcpConfig, TcpReader, TcpWriter};
use baler_connector_testkit::hostile::{
    ATTACKS, Guard, Header, Hello, LIVE_PRODUCER, SENDER, chunk, connect, greet, sealed,
    stall_in_large_chunks,
};
use baler_connector_testkit::{
    ChunkSource, Label, PATIENCE, Pump, Tap, drive_pair, payload, within_patience,
};

use crate::support::{Secrets, config, receiver, with};

/// Returns the next damage that the reader reports.
fn damaged(reader: &mut TcpReader) -> Damaged {
    match reader.receive(Instant::now() + PATIENCE).unwrap() {
        Received::Damaged(damaged) => damaged,
        other => panic!("damage was expected, not {other:?}"),
    }
}

#[test]
fn wrong_hellos_are_told_with_their_bytes() {
    let table: [(&[u8], &str); 7] = [
        (b"GET / HTTP/1.1\r\n\r\n", "does not speak Baler's protocol"),
        (
            b"\x16\x03\x01\x02\x00\x01",
            "does not speak Baler's protocol",
        ),
        (&[0; 4096], "does not speak Baler's protocol"),
        (b"BALERTCP\x01\x00", "the connection ended"),
        (
            &sealed([b"BALERTCP".as_slice(), &[0; 28]].concat()),
            "speaks version 0",
        ),
        (
            &Hello { role: 2, ..SENDER }.bytes(),
            "a receiver, a sender is needed",
        ),
        (
            &Hello {
                window_chunks: 0,
                ..SENDER
            }
            .bytes(),
            "0 is not allowed",
        ),
    ];
    let mut reader = receiver(config(0));
    for (bytes, reason) in table {
        let mut stream = connect(reader.local_addr());
        stream.write_all(bytes).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let damaged = damaged(&mut reader);
        assert!(
            damaged.reason.contains(reason),
            "{}: {}",
            reason,
            damaged.reason
        );
        assert!(bytes.starts_with(&damaged.bytes) && !damaged.bytes.is_empty());
        assert_eq!(damaged.origin.position, 0);
        let peer = stream.local_addr().unwrap().to_string();
        assert_eq!(&*damaged.origin.lane, peer);
    }
    assert_eq!(reader.stats().damaged, 7);
    assert_eq!(reader.stats().connections, 0);
}

#[test]
fn writer_of_kieker_is_told_what_it_is_and_what_to_do() {
    let streams: [&[u8]; 3] = [
        include_bytes!("../../../kieker/tests/golden/tcp-single.stream"),
        include_bytes!("../../../kieker/tests/golden/tcp-dual-registry-head.stream"),
        include_bytes!("../../../kieker/tests/golden/tcp-dual-records-head.stream"),
    ];
    let mut reader = receiver(config(0));
    let with_one_socket = "the peer is a socket writer of Kieker; receive it with \
                           kieker+tcp://127.0.0.1:0";
    let with_two = "if it is a socket writer of Kieker, receive it with kieker+tcp:";
    for bytes in streams {
        let advice = match bytes.starts_with(&[0xff; 4]) {
            true => with_one_socket,
            false => with_two,
        };
        // The network may cut the stream anywhere.
        for first in [1, 6, 13, bytes.len()] {
            let mut stream = connect(reader.local_addr());
            stream.set_nodelay(true).unwrap();
            let (first, rest) = bytes.split_at(first);
            stream.write_all(first).unwrap();
            stream.write_all(rest).unwrap();
            let damaged = damaged(&mut reader);
            assert!(damaged.reason.contains(advice), "{}", damaged.reason);
            assert!(bytes.starts_with(&damaged.bytes));
        }
    }
    assert_eq!(reader.stats().damaged, 12);
}

#[test]
fn flipped_hello_is_told() {
    let mut reader = receiver(config(0));
    let mut bytes = SENDER.bytes();
    bytes[18] ^= 0x10;
    let mut stream = connect(reader.local_addr());
    stream.write_all(&bytes).unwrap();
    assert!(damaged(&mut reader).reason.contains("checksum"));
    assert_eq!(
        stream.read(&mut [0; 40]).unwrap_or(0),
        0,
        "no answer to that"
    );
}

#[test]
fn sender_of_another_version_learns_which_are_spoken() {
    let mut reader = receiver(config(0));
    let hello = Hello {
        versions: (2, 9),
        ..SENDER
    };
    let mut stream = connect(reader.local_addr());
    let answer = greet(&mut stream, hello);
    assert_eq!(answer[8..12], [1, 0, 1, 0]);
    assert_eq!(answer[12], 2, "the answer is a receiver's");
    let reason = damaged(&mut reader).reason;
    assert!(
        reason.contains("speaks versions 2 to 9 of the protocol, this side version 1"),
        "{reason}"
    );
    assert_eq!(
        stream.read(&mut [0; 1]).unwrap_or(0),
        0,
        "then it is closed"
    );
}

#[test]
fn hello_that_never_ends_is_given_up() {
    let mut reader = receiver(with(config(0), |config| {
        config.connect_timeout = Duration::from_millis(50);
    }));
    let mut stream = connect(reader.local_addr());
    stream.write_all(b"BALER").unwrap();
    let damaged = damaged(&mut reader);
    assert!(
        damaged.reason.contains("nothing came for 50 ms"),
        "{}",
        damaged.reason
    );
    assert_eq!(&*damaged.bytes, b"BALER");
}

#[test]
fn wrong_frames_end_their_connection_and_no_other() {
    let label = Label {
        producer: 7,
        lane: 0,
        sequence: 0,
    };
    let (good, container) = chunk(0, &payload(label, 100));
    let with = |header: Header, payload: &[u8]| [header.bytes().as_slice(), payload].concat();
    let short = |kind, length| {
        Header {
            length,
            ..Header::short(kind, 0)
        }
        .bytes()
    };
    let flipped = |at: usize| {
        let mut bytes = with(good, &container);
        bytes[at] ^= 0x40;
        bytes
    };
    let table: [(Vec<u8>, &str); 13] = [
        (vec![0; 28], "checksum"),
        (
            b"GET / HTTP/1.1\r\nHost: example\r\n\r\n".to_vec(),
            "checksum",
        ),
        (flipped(7), "checksum"),
        (flipped(28 + 3), "checksum"),
        (flipped(28 + 40 + 99), "checksum"),
        (
            with(
                Header {
                    length: 20_041,
                    ..good
                },
                &container,
            ),
            "20041 is not between 40 and 20040",
        ),
        (
            with(
                Header {
                    length: u32::MAX,
                    ..good
                },
                &container,
            ),
            "4294967295 is not between",
        ),
        (
            with(Header { length: 39, ..good }, &container),
            "39 is not between",
        ),
        (
            with(
                Header {
                    sequence: 1,
                    ..good
                },
                &container,
            ),
            "chunk 1 came when 0 was due",
        ),
        (
            with(Header { flags: 0, ..good }, &container),
            "without an identity",
        ),
        (
            with(
                Header {
                    container: 4,
                    ..good
                },
                &container,
            ),
            "4 is not allowed",
        ),
        (Header::short(2, 0).bytes(), "2 is not allowed"),
        (short(3, 1), "the length 1"),
    ];
    let reader = receiver(config(0));
    let address = reader.local_addr();
    let counts = reader.stats_handle();
    let mut tap = Tap::new(Box::new(reader));
    let mut pump = Pump::open(Box::new(TcpWriter::new(config(address.port()))));
    let mut source = ChunkSource::new(1);
    for (round, (bytes, reason)) in (1..).zip(table) {
        let mut stream = connect(address);
        greet(&mut stream, SENDER);
        stream.write_all(&bytes).unwrap();
        pump.push(source.take(5));
        drive_pair("the others go on", &mut pump, &mut tap, |pump, tap| {
            pump.is_done() && { tap.received().len() == 5 * round && tap.damaged().len() == round }
        });
        let damaged = tap.damaged().last().unwrap();
        assert!(
            damaged.reason.contains(reason),
            "{}: {}",
            reason,
            damaged.reason
        );
        assert!(bytes.ends_with(&damaged.bytes) || bytes.starts_with(&damaged.bytes));
        assert!(damaged.origin.position >= 40, "behind the hello");
        let mut rest = Vec::new();
        // The end may come as a reset.
        stream.read_to_end(&mut rest).ok();
    }
    assert_eq!((pump.breaks(), counts().damaged), (0, 13));
}

#[test]
fn more_than_the_window_is_refused() {
    let mut reader = receiver(config(0));
    let mut stream = connect(reader.local_addr());
    greet(&mut stream, SENDER);
    for sequence in 0..9 {
        let label = Label {
            producer: 7,
            lane: 0,
            sequence,
        };
        let (header, bytes) = chunk(sequence, &payload(label, 50));
        stream.write_all(&[header.bytes(), bytes].concat()).unwrap();
    }
    reader.set_demand(8);
    let told = within_patience("the damage is told", || {
        match reader.receive(Instant::now() + PATIENCE).unwrap() {
            Received::Damaged(damaged) => Some(damaged),
            _ => None,
        }
    });
    assert!(
        told.reason.contains("window of 8 chunks"),
        "{}",
        told.reason
    );
}

#[test]
fn more_senders_than_allowed_are_turned_away() {
    let reader = receiver(with(config(0), |config| {
        config.max_connections = NonZeroUsize::new(2).unwrap();
    }));
    let mut streams: Vec<_> = (0..2).map(|_| connect(reader.local_addr())).collect();
    for stream in &mut streams {
        greet(stream, SENDER);
    }
    let mut third = connect(reader.local_addr());
    third.write_all(&SENDER.bytes()).ok();
    assert_eq!(third.read(&mut [0; 40]).unwrap_or(0), 0, "no answer");
    assert_eq!(reader.stats().connections_turned_away, 1);
    drop(streams);
    within_patience("there is room again", || {
        let mut next = connect(reader.local_addr());
        next.write_all(&SENDER.bytes()).ok()?;
        next.read_exact(&mut [0; 40]).ok()
    });
}

#[test]
fn flood_of_foreign_bytes_is_bounded_and_counted() {
    let mut reader = receiver(config(0));
    for _ in 0..40 {
        let mut stream = connect(reader.local_addr());
        stream.write_all(b"nonsense").unwrap();
        // Until it is closed, by an end or a reset.
        stream.read_to_end(&mut Vec::new()).ok();
    }
    let counts = reader.stats_handle();
    within_patience("all is counted", || (counts().damaged == 40).then_some(()));
    let mut told = 0;
    while let Received::Damaged(_) = reader.receive(Instant::now()).unwrap() {
        told += 1;
    }
    assert_eq!(told + counts().damaged_untold, 40);
    assert!(counts().damaged_untold > 0);
}

#[test]
fn port_that_is_only_looked_at_is_no_damage() {
    let mut reader = receiver(config(0));
    drop(connect(reader.local_addr()));
    let idle = reader.receive(Instant::now() + Duration::from_millis(50));
    assert!(matches!(idle, Ok(Received::Idle)), "{idle:?}");
    assert_eq!(reader.stats().damaged, 0);
}

/// Returns the number of chunks that the live sender gets through in a while, beside an attack.
fn throughput(pump: &mut Pump, tap: &mut Tap, source: &mut ChunkSource) -> usize {
    const WHILE: Duration = Duration::from_millis(300);
    let (before, began) = (pump.confirmed(), Instant::now());
    while began.elapsed() < WHILE {
        if pump.pending() < 32 {
            pump.push((0..32).map(|_| source.next(0, 10_000)));
        }
        pump.step();
        // A bounded number of times, so that the pump gets its turn.
        for _ in 0..64 {
            if !tap.poll(Duration::from_millis(1)) {
                break;
            }
        }
    }
    pump.confirmed() - before
}

#[test]
fn a_live_sender_goes_on_beside_every_attack() {
    let secrets = Secrets::new();
    for attack in ATTACKS {
        if attack.guard == Guard::Tls && cfg!(not(feature = "tls")) {
            continue;
        }
        let name = attack.name;
        // Silence ends no connection before the test is over.
        let config = |port| {
            let config = secrets.config(attack.guard, port);
            with(config, |config| config.heartbeat = Duration::from_secs(600))
        };
        let reader = receiver(config(0));
        let (address, counts) = (reader.local_addr(), reader.stats_handle());
        let mut tap = Tap::new(Box::new(reader));
        let mut pump = Pump::open(Box::new(TcpWriter::new(config(address.port()))));
        let mut source = ChunkSource::new(LIVE_PRODUCER);
        throughput(&mut pump, &mut tap, &mut source);
        let mut peers = Vec::new();
        // A busy machine may slow down one of two measurements. An attack that works slows down
        // all.
        within_patience(name, || {
            peers.clear();
            let alone = throughput(&mut pump, &mut tap, &mut source);
            peers = (attack.run)(address);
            let beside = throughput(&mut pump, &mut tap, &mut source);
            (beside >= alone.div_ceil(2)).then_some(())
        });
        assert_eq!(pump.breaks(), 0, "{name}");
        match attack.refusal {
            None => assert_eq!(tap.damaged().len(), 0, "{name}"),
            Some(reason) => {
                drive_pair(name, &mut pump, &mut tap, |_, tap| {
                    tap.damaged().len() >= peers.len()
                });
                for damaged in tap.damaged() {
                    assert!(
                        damaged.reason.contains(reason),
                        "{name}: {}",
                        damaged.reason
                    );
                }
                let is_foreign = reason.contains("speak");
                assert_eq!(counts().connections_refused == 0, is_foreign, "{name}");
            }
        }
    }
}

#[test]
fn unsettled_chunks_of_one_sender_leave_room_for_others() {
    let window = NonZeroU32::new(1 << 20).unwrap();
    // Memory for nine of these chunks.
    let mut reader = receiver(with(config(0), |config| config.window.bytes = window));
    let port = reader.local_addr().port();
    let flood = |producer| {
        let writer = TcpWriter::new(with(config(port), |config| config.window.bytes = window));
        let mut pump = Pump::open(Box::new(writer));
        let mut source = ChunkSource::new(producer);
        pump.push((0..20).map(|_| source.next(0, 10_000)));
        pump
    };
    let mut pumps = Vec::new();
    // Nothing is settled. Each chunk comes through while the others hold their share of the memory.
    for producer in 1..4 {
        pumps.push(flood(producer));
        let mut chunks = 0;
        within_patience("the sender comes through, and then waits", || {
            pumps.iter_mut().for_each(Pump::step);
            match reader
                .receive(Instant::now() + Duration::from_millis(200))
                .unwrap()
            {
                Received::Chunk(_) => chunks += 1,
                Received::Idle if chunks > 0 => return Some(()),
                Received::Idle => {}
                other => panic!("a chunk was expected, not {other:?}"),
            }
            None
        });
        assert!(
            chunks <= 5,
            "{chunks} chunks are more than half of the memory"
        );
    }
}

#[test]
fn silence_in_the_middle_of_a_chunk_is_limited_by_the_receiver() {
    let reader = receiver(with(TcpConfig::new("127.0.0.1", 0), |config| {
        config.heartbeat = Duration::from_millis(200);
    }));
    let address = reader.local_addr();
    let counts = reader.stats_handle();
    // More bytes than all chunks that have arrived in part may take.
    let stalled = stall_in_large_chunks(address, 40, 1 << 20);
    let mut tap = Tap::new(Box::new(reader));
    let writer = TcpWriter::new(TcpConfig::new("127.0.0.1", address.port()));
    let mut pump = Pump::open(Box::new(writer));
    let mut source = ChunkSource::new(1);
    pump.push((0..3).map(|_| source.next(0, 8 << 20)));
    drive_pair(
        "large chunks get through",
        &mut pump,
        &mut tap,
        |pump, tap| pump.is_done() && tap.distinct() == 3,
    );
    within_patience("the others are cut", || {
        (counts().connections_lost >= 40).then_some(())
    });
    drop(stalled);
}

#[test]
fn large_chunks_of_several_senders_arrive_together_in_little_memory() {
    let memory = NonZeroUsize::new(1 << 20).unwrap();
    let reader = receiver(with(TcpConfig::new("127.0.0.1", 0), |config| {
        config.memory_bytes = memory;
    }));
    let port = reader.local_addr().port();
    let mut tap = Tap::new(Box::new(reader));
    let mut pumps: Vec<_> = (0..4)
        .map(|producer| {
            let writer = TcpWriter::new(TcpConfig::new("127.0.0.1", port));
            let mut pump = Pump::open(Box::new(writer));
            let mut source = ChunkSource::new(producer);
            pump.push((0..3).map(|_| source.next(0, 2 << 20)));
            pump
        })
        .collect();
    within_patience("all arrive, one after the other", || {
        pumps.iter_mut().for_each(Pump::step);
        tap.poll(Duration::from_millis(5));
        let done = pumps.iter().all(Pump::is_done);
        (done && tap.distinct() == 12).then_some(())
    });
}
