use baler_common::transport::NotifyCell;
use baler_connector_testkit::{ChunkSource, PATIENCE, within_patience};

use super::*;

fn store(config: SpoolConfig) -> Store {
    let mut store = Store::new(config, SpoolWatch::default(), Arc::<NotifyCell>::default());
    store.prepare(Instant::now()).unwrap();
    assert!(store.ensure_writable(Instant::now()));
    store
}

/// Returns the number of chunks that the next life finds.
fn found(store: &Store) -> u64 {
    let consumer = CONSUMER.parse().unwrap();
    backlog(&store.chunks_folder(), &consumer).unwrap().chunks
}

/// The store learns from an offer that the writer broke, and has not taken the confirmations of
/// the chunks before the one that failed.
#[test]
fn chunks_that_were_confirmed_before_the_disk_failed_are_spooled() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = SpoolConfig::new(folder.path());
    config.max_bytes = 2_000.try_into().unwrap();
    let mut store = store(config);
    let mut source = ChunkSource::new(1);
    within_patience("the folder is full", || {
        store.offer(source.next(0, 100), 0, Instant::now());
        store.is_failing().then_some(())
    });
    let written: Vec<_> = store.written(Instant::now());
    let tickets: Vec<_> = written.iter().map(|flight| flight.ticket).collect();
    assert!(!tickets.is_empty());
    assert_eq!(tickets, Vec::from_iter(0..found(&store)));
    let status = store.watch.status();
    assert_eq!(status.stats.spooled_chunks, found(&store));
    assert_eq!(store.written(Instant::now()).len(), 0);
}

#[test]
fn chunks_that_are_written_while_the_store_closes_are_spooled() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = store(SpoolConfig::new(folder.path()));
    for chunk in ChunkSource::new(1).take(3) {
        assert!(store.offer(chunk, 0, Instant::now()));
    }
    store.clear(Instant::now() + PATIENCE, false);
    assert_eq!(store.written(Instant::now()).len(), 3);
    assert_eq!(
        (store.watch.status().stats.spooled_chunks, found(&store)),
        (3, 3)
    );
    // The next life knows that they must be there.
    let promised = store.promise.as_ref().and_then(PromiseFile::stored);
    assert_eq!(promised.unwrap().next_chunk, 3);
}
