//! A named consumer's position across restarts.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use baler_common::transport::{ChunkReader as _, Received, Token, Verdict};
use baler_connector_file::{FileReader, FileReaderConfig, FileWriterConfig, SyncPolicy};
use proptest::prelude::*;

use crate::segments::support::{labels, segments, soon, write};

fn open(folder: &Path, commit_interval: Duration) -> FileReader {
    let mut config = FileReaderConfig::new(folder);
    config.consumer = Some("billing".parse().unwrap());
    config.commit_interval = commit_interval;
    FileReader::open(config).unwrap()
}

#[derive(Debug, Clone)]
enum Act {
    Receive,
    Settle(prop::sample::Index, bool),
    Retry(prop::sample::Index),
    /// Closes, or drops as a crash would.
    Restart(bool),
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        6 => Just(Act::Receive),
        4 => (any::<prop::sample::Index>(), any::<bool>()).prop_map(|(at, ack)| Act::Settle(at, ack)),
        1 => any::<prop::sample::Index>().prop_map(Act::Retry),
        1 => any::<bool>().prop_map(Act::Restart),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    /// The first chunk after a restart is the first unsettled chunk: none is skipped. The position
    /// is written at each settlement, so no earlier chunk is repeated.
    #[test]
    fn position_is_the_first_unsettled_chunk(acts in prop::collection::vec(act(), 1..120)) {
        const CHUNKS: usize = 20;
        let folder = tempfile::tempdir().unwrap();
        let mut config = FileWriterConfig::new(folder.path());
        config.segment_bytes = 700.try_into().unwrap();
        config.sync = SyncPolicy::None;
        let pump = write(&config, CHUNKS);
        pump.close(soon());

        let mut settled = [false; CHUNKS];
        let mut held: BTreeMap<usize, Token> = BTreeMap::new();
        let mut fresh = true;
        let mut reader = open(folder.path(), Duration::ZERO);
        for act in acts {
            match act {
                Act::Receive => match reader.receive(Instant::now()).unwrap() {
                    Received::Chunk(delivery) => {
                        let sequence = delivery.meta.unwrap().identity.sequence;
                        let sequence = usize::try_from(sequence).unwrap();
                        if std::mem::take(&mut fresh) {
                            let expected = settled.iter().position(|settled| !settled);
                            prop_assert_eq!(Some(sequence), expected);
                        }
                        prop_assert!(held.insert(sequence, delivery.token).is_none());
                    }
                    Received::End => prop_assert!(settled.iter().all(|settled| *settled)),
                    Received::Idle => {}
                    other => prop_assert!(false, "{other:?}"),
                },
                Act::Settle(at, ack) if !held.is_empty() => {
                    let sequence = *held.keys().nth(at.index(held.len())).unwrap();
                    let verdict = if ack { Verdict::Ack } else { Verdict::Reject };
                    reader.settle(held.remove(&sequence).unwrap(), verdict).unwrap();
                    settled[sequence] = true;
                }
                Act::Retry(at) if !held.is_empty() => {
                    let sequence = *held.keys().nth(at.index(held.len())).unwrap();
                    reader.settle(held.remove(&sequence).unwrap(), Verdict::Retry).unwrap();
                }
                Act::Settle(..) | Act::Retry(_) => {}
                Act::Restart(closes) => {
                    match closes {
                        true => {
                            let report = Box::new(reader).close(soon());
                            prop_assert_eq!(report.unsettled, held.len());
                            prop_assert!(report.error.is_none());
                        }
                        false => drop(reader),
                    }
                    held.clear();
                    // Chunks that were settled after the first gap come again, too.
                    let first = settled.iter().position(|settled| !settled);
                    settled.iter_mut().skip(first.unwrap_or(0)).for_each(|settled| {
                        *settled = first.is_none();
                    });
                    fresh = true;
                    reader = open(folder.path(), Duration::ZERO);
                }
            }
        }
    }
}

#[test]
fn position_lags_until_its_interval_and_is_written_when_closed() {
    let folder = tempfile::tempdir().unwrap();
    write(&FileWriterConfig::new(folder.path()), 4).close(soon());
    let hour = Duration::from_secs(3_600);
    let next = |reader: &mut FileReader| match crate::segments::support::poll(reader) {
        Received::Chunk(delivery) => delivery.meta.unwrap().identity.sequence,
        other => panic!("{other:?}"),
    };
    let mut reader = open(folder.path(), hour);
    assert_eq!((next(&mut reader), next(&mut reader)), (0, 1));
    drop(reader);
    let mut reader = open(folder.path(), hour);
    assert_eq!(next(&mut reader), 0);
    Box::new(reader).close(soon());
    let mut reader = open(folder.path(), hour);
    assert_eq!(next(&mut reader), 1);
}

#[test]
fn second_reader_of_the_same_consumer_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let first = open(folder.path(), Duration::ZERO);
    let mut config = FileReaderConfig::new(folder.path());
    config.consumer = Some("billing".parse().unwrap());
    let error = FileReader::open(config.clone()).unwrap_err();
    assert!(error.is_retryable());
    assert!(error.to_string().contains("billing"), "{error}");
    config.consumer = Some("audit".parse().unwrap());
    FileReader::open(config).unwrap();
    drop(first);
}

#[test]
fn numbers_that_a_consumer_settled_are_not_given_again() {
    // A machine lost power: the consumer's position was forced to disk, the chunks were not.
    let folder = tempfile::tempdir().unwrap();
    let mut config = FileWriterConfig::new(folder.path());
    config.sync = SyncPolicy::None;
    for lost in [10, u64::MAX] {
        write(&config, 6).close(soon());
        let mut reader = open(folder.path(), Duration::ZERO);
        while matches!(
            crate::segments::support::poll(&mut reader),
            Received::Chunk(_)
        ) {}
        Box::new(reader).close(soon());
        let newest = *segments(folder.path()).last().unwrap();
        let path = folder
            .path()
            .join(baler_connector_file::segment_name(newest));
        let file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
        let length = file.metadata().unwrap().len();
        file.set_len(length.saturating_sub(lost).max(32)).unwrap();
        drop(file);

        write(&config, 3).close(soon());
        let mut reader = open(folder.path(), Duration::ZERO);
        let mut again = 0;
        while let Received::Chunk(_) = crate::segments::support::poll(&mut reader) {
            again += 1;
        }
        assert_eq!(again, 3, "up to {lost} bytes were lost");
        Box::new(reader).close(soon());
    }
    assert!(labels(folder.path()).len() > 9);
}
