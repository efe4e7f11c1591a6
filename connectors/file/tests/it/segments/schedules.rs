//! Random histories of a folder's reader: settled in any order, retried, killed and opened again.

use std::collections::BTreeMap;

use baler_common::transport::{ChunkReader as _, Received, Settled, Token, Verdict};
use baler_connector_file::{FileReader, FileReaderConfig, Position, Start};
use baler_connector_testkit::{Dice, each_schedule};

use crate::segments::support::{put, segment};

const CHUNKS: u64 = 12;

/// Two segments of six chunks each; and where each chunk is, by its number.
fn folder() -> tempfile::TempDir {
    // In memory if the system has such a folder: a million histories open it several times each.
    let memory = std::path::Path::new("/dev/shm");
    let folder = if memory.is_dir() {
        tempfile::tempdir_in(memory)
    } else {
        tempfile::tempdir()
    };
    let folder = folder.unwrap();
    let chunks: Vec<Vec<u8>> = (0..6).map(|chunk| vec![chunk; 20]).collect();
    for first in [0, 6] {
        put(folder.path(), first, &segment(first, &chunks).bytes);
    }
    folder
}

struct Life {
    reader: FileReader,
    held: Vec<(Token, Position)>,
}

fn open(folder: &std::path::Path, from: Start) -> Life {
    let mut config = FileReaderConfig::new(folder);
    config.from = from;
    let mut reader = FileReader::open(config).unwrap();
    reader.set_demand(6);
    Life {
        reader,
        held: Vec::new(),
    }
}

fn receive(life: &mut Life) -> bool {
    match life.reader.receive(std::time::Instant::now()).unwrap() {
        Received::Chunk(delivery) => {
            let at = Position {
                segment: baler_connector_file::parse_segment_name(&delivery.origin.lane).unwrap(),
                offset: delivery.origin.position,
            };
            life.held.push((delivery.token, at));
            true
        }
        _ => false,
    }
}

/// Settles a chunk. Checks that the watermark passes no unsettled chunk.
fn settle(life: &mut Life, dice: &mut Dice, retries: bool, settled: &mut BTreeMap<Position, bool>) {
    let Some((token, at)) = dice.draw(&mut life.held) else {
        return;
    };
    let verdict = match dice.below(8) {
        0 if retries => Verdict::Retry,
        1 => Verdict::Reject,
        _ => Verdict::Ack,
    };
    assert_eq!(life.reader.settle(token, verdict).unwrap(), Settled::Done);
    if verdict != Verdict::Retry {
        settled.insert(at, true);
    }
}

fn check(life: &Life, settled: &BTreeMap<Position, bool>) {
    let watermark = life.reader.watermark();
    for (at, settled) in settled.range(..watermark) {
        assert!(
            settled,
            "{watermark:?} is past {at:?}, which is not settled"
        );
    }
}

#[test]
fn no_schedule_moves_the_watermark_past_an_unsettled_chunk() {
    let folder = folder();
    let mut every: BTreeMap<Position, bool> = BTreeMap::new();
    let mut life = open(folder.path(), Start::Oldest);
    life.reader.set_demand(usize::MAX);
    while receive(&mut life) {}
    every.extend(life.held.iter().map(|(_, at)| (*at, false)));
    assert_eq!(every.len(), usize::try_from(CHUNKS).unwrap());
    each_schedule(1_000, |dice| {
        let mut settled = every.clone();
        let mut life = open(folder.path(), Start::Oldest);
        let steps = 10 + dice.below(40);
        for _ in 0..steps {
            match dice.below(16) {
                0..7 => {
                    receive(&mut life);
                }
                7..15 => settle(&mut life, dice, true, &mut settled),
                _ => {
                    if dice.once_in(2) {
                        let watermark = life.reader.watermark();
                        life = open(folder.path(), Start::Position(watermark));
                    }
                }
            }
            check(&life, &settled);
        }
        for _ in 0..CHUNKS * 3 {
            receive(&mut life);
            settle(&mut life, dice, false, &mut settled);
            check(&life, &settled);
        }
        assert!(settled.values().all(|settled| *settled), "chunks are stuck");
    });
}
