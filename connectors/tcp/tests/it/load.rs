//! Many senders at a time.

use std::collections::HashSet;
use std::io::{Read, Write};
use std::slice;
use std::time::Instant;

use baler_common::transport::{ChunkReader, Received, Verdict};
use baler_connector_tcp::TcpWriter;
use baler_connector_testkit::{
    ChunkSource, Label, PATIENCE, Pump, Tap, drive, payload, read_label, within_patience,
};

use crate::support::{config, receiver};
use baler_connector_testkit::hostile::{Header, Hello, SENDER, connect, greet, header};

#[test]
fn fifty_writers_each_keep_their_order() {
    let reader = receiver(config(0));
    let port = reader.local_addr().port();
    let counts = reader.stats_handle();
    let mut tap = Tap::new(Box::new(reader));
    let mut pumps: Vec<Pump> = (1..=50)
        .map(|producer| {
            let mut pump = Pump::open(Box::new(TcpWriter::new(config(port))));
            pump.push(ChunkSource::new(producer).take(100));
            pump
        })
        .collect();
    drive(
        "all arrives",
        &mut pumps,
        slice::from_mut(&mut tap),
        |pumps, taps| {
            pumps.iter().all(Pump::is_done) && taps.iter().all(|tap| tap.received().len() == 5000)
        },
    );
    tap.assert_ordered();
    assert_eq!((tap.distinct(), counts().connections), (5000, 50));
    assert_eq!(counts().connections_lost, 0);
}

#[test]
fn four_hundred_connections_share_one_thread() {
    let mut reader = receiver(config(0));
    let address = reader.local_addr();
    let mut streams: Vec<_> = (0..400_u64)
        .map(|_| {
            let mut stream = connect(address);
            greet(
                &mut stream,
                Hello {
                    heartbeat_ms: 600_000,
                    ..SENDER
                },
            );
            stream
        })
        .collect();
    for (lane, stream) in (0..).zip(&mut streams) {
        let label = Label {
            producer: 0,
            lane,
            sequence: 0,
        };
        // A producer belongs to one connection.
        let mut bytes = vec![0; 40];
        bytes[..4].copy_from_slice(&lane.to_le_bytes());
        bytes.extend(payload(label, 60));
        let header = header(0, &bytes);
        stream.write_all(&[header.bytes(), bytes].concat()).unwrap();
    }
    let mut lanes = HashSet::new();
    within_patience("all arrives", || {
        match reader.receive(Instant::now() + PATIENCE).unwrap() {
            Received::Chunk(delivery) => {
                lanes.insert(read_label(&delivery.bytes).lane);
                reader.settle(delivery.token, Verdict::Ack).unwrap();
            }
            other => panic!("a chunk was expected, not {other:?}"),
        }
        (lanes.len() == 400).then_some(())
    });
    for stream in &mut streams {
        let mut answer = [0; 28];
        stream.read_exact(&mut answer).unwrap();
        assert_eq!(
            answer[..],
            Header::short(2, 1).bytes(),
            "each is acknowledged"
        );
    }
}
