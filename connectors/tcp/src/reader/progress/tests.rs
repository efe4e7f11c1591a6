use baler_connector_testkit::each_schedule;
use proptest::prelude::*;

use super::*;

proptest! {
    #[test]
    fn watermark_never_passes_an_unsettled_chunk(order in Just((0..40_u64).collect::<Vec<_>>()).prop_shuffle()) {
        let mut progress = Progress::default();
        let mut settled = vec![false; order.len()];
        for sequence in order {
            progress.settle(sequence);
            settled[usize::try_from(sequence).unwrap()] = true;
            let contiguous = settled.iter().take_while(|settled| **settled).count();
            prop_assert_eq!(usize::try_from(progress.watermark()), Ok(contiguous));
        }
        prop_assert!(progress.chunks.is_empty());
    }
}

// Random histories of connections: chunks are settled in any order, connections are lost, and the
// sender opens them again and repeats the chunks that were not acknowledged.
const CHUNKS: usize = 40;
const WINDOW: usize = 8;

#[test]
fn no_schedule_acknowledges_past_an_unsettled_chunk() {
    each_schedule(20_000, |dice| {
        // The chunks that the sender keeps until they are acknowledged, numbered over all lives.
        let mut unconfirmed: VecDeque<usize> = (0..CHUNKS).collect();
        let mut settled = [false; CHUNKS];
        let mut lives = 0;
        while !unconfirmed.is_empty() {
            lives += 1;
            assert!(lives < 4_000, "no end");
            let connection = Connection::new("tcp://sender:1".into(), Proof::None, Duration::MAX);
            // Chunks that were sent over this connection, by their sequence in it.
            let mut sent: Vec<usize> = Vec::new();
            let mut held: Vec<usize> = Vec::new();
            let mut told = 0;
            let steps = 1 + dice.below(60);
            for _ in 0..steps {
                match dice.below(8) {
                    0..3 if sent.len() - told < WINDOW => {
                        if let Some(chunk) = unconfirmed.get(sent.len() - told) {
                            held.push(sent.len());
                            sent.push(*chunk);
                        }
                    }
                    3..6 => {
                        // For a connection, a chunk that is given back is a chunk that is settled
                        // later.
                        if let Some(sequence) = dice.draw(&mut held) {
                            if dice.once_in(6) {
                                held.push(sequence);
                                continue;
                            }
                            settled[sent[sequence]] = true;
                            let sequence = u64::try_from(sequence).unwrap();
                            assert_eq!(connection.settle(sequence), Settled::Done);
                        }
                    }
                    _ => {
                        let watermark = usize::try_from(connection.watermark()).unwrap();
                        for chunk in &sent[..watermark] {
                            assert!(settled[*chunk], "{chunk} is acknowledged and not settled");
                        }
                        assert!(watermark >= told, "the watermark went back");
                        for chunk in &sent[told..watermark] {
                            assert_eq!(unconfirmed.pop_front(), Some(*chunk));
                        }
                        told = watermark;
                    }
                }
            }
            // The connection is cut off, or killed: late settlements are stale and move nothing.
            connection.set_gone();
            let before = connection.watermark();
            for sequence in held {
                let sequence = u64::try_from(sequence).unwrap();
                assert_eq!(connection.settle(sequence), Settled::Stale);
            }
            assert_eq!(connection.watermark(), before);
        }
        assert!(settled.iter().all(|settled| *settled));
    });
}
