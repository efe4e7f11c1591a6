//! What librdkafka is lent: it reads a chunk's own memory until the delivery report.

use std::time::Duration;

use baler_connector_testkit::{ChunkSource, Medium, Tap, within_patience};

use crate::support::{Kafka, soon};

/// Copied into the client's requests, and sent from where they are.
const SIZES: [usize; 8] = [1_000, 10_000, 1_000, 10_000, 1_000, 10_000, 1_000, 10_000];

#[test]
fn nobody_but_the_writer_need_hold_a_chunk() {
    let mut kafka = Kafka::fresh();
    let mut writer = kafka.writer();
    writer.reopen(soon()).unwrap();
    let mut tap = Tap::new(kafka.reader());
    let mut source = ChunkSource::new(1);
    for round in 1..=4 {
        // While it is away, what is offered waits in the client's queue.
        kafka.stall();
        for bytes in SIZES {
            writer.offer(source.next(0, bytes)).unwrap();
        }
        // Whatever memory was given back holds something else now.
        let others = [(); 32].map(|()| SIZES.map(|bytes| vec![0xff_u8; bytes]));
        drop(std::hint::black_box(others));
        kafka.resume();
        // The tap looks at every byte.
        within_patience("all chunks of a round arrive", || {
            tap.poll(Duration::from_millis(20));
            (tap.distinct() == round * SIZES.len()).then_some(())
        });
    }
    let mut confirmed = Vec::new();
    within_patience("all are confirmed", || {
        writer.confirmations(&mut confirmed).unwrap();
        (confirmed.len() == 4 * SIZES.len()).then_some(())
    });
    // What is given up on the way is given back as well.
    kafka.stall();
    for bytes in SIZES {
        writer.offer(source.next(0, bytes)).unwrap();
    }
    let report = writer.close(soon() - Duration::from_secs(9));
    assert_eq!(report.unconfirmed.len(), SIZES.len());
}
