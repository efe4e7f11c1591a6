//! A consumer that dies at any point between a delivery and its acknowledgement.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use baler::ConsumerConfig;

use crate::support::{Folder, Order, send_orders};

/// In the environment of a consumer's process: its source, its output, and the point of its death.
const URI: &str = "BALER_TEST_CONSUMES";
const LOG: &str = "BALER_TEST_LOG";
const DIES_AT: &str = "BALER_TEST_DIES_AT";

/// The number of orders, and the number in a chunk.
const ORDERS: u64 = 400;
const CHUNK: usize = 8;

/// A consumer in its own process. It writes a line for each order, and dies before a given point.
/// There is one point before each order is handled, and one before each batch is acknowledged.
#[test]
fn consumer_process() {
    let Ok(uri) = env::var(URI) else {
        // Only the other tests start it.
        return;
    };
    let mut left: Option<u64> = env::var(DIES_AT).ok().map(|it| it.parse().unwrap());
    let mut point = || {
        if let Some(left) = &mut left {
            if *left == 0 {
                // As if killed: no destructor runs.
                std::process::abort();
            }
            *left -= 1;
        }
    };
    let mut log = OpenOptions::new()
        .append(true)
        .create(true)
        .open(env::var(LOG).unwrap())
        .unwrap();
    let mut config: ConsumerConfig = uri.parse().unwrap();
    // A broker delivers again a moment after the connection of a dead consumer has broken.
    config.idle_timeout = Some(std::time::Duration::from_secs(10));
    for batch in baler::consume::<Order>(config).unwrap() {
        let batch = batch.unwrap();
        for (identity, order) in batch.identified() {
            point();
            let line = format!("{} {}\n", order.id, identity.unwrap());
            log.write_all(line.as_bytes()).unwrap();
        }
        point();
        batch.ack().unwrap();
    }
}

/// Starts a consumer's process and waits for its end; returns whether it survived.
fn consume(uri: &str, log: &Path, dies_at: Option<u64>) -> bool {
    let mut command = Command::new(env::current_exe().unwrap());
    command
        .args(["--exact", "killed::consumer_process"])
        .env(URI, uri)
        .env(LOG, log)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    if let Some(point) = dies_at {
        command.env(DIES_AT, point.to_string());
    }
    command.status().unwrap().success()
}

/// Kills 50 consumers one after the other, and lets another one finish.
pub(crate) fn loses_nothing(writer: &str, reader: &str) {
    send_orders(writer, ORDERS, CHUNK);
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("handled");
    let mut state: u64 = 0x5eed;
    for _ in 0..50 {
        // A linear congruential generator: its upper bits are random enough.
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        // At most one chunk is acknowledged, so that there is enough for all.
        let point = (state >> 33) % (CHUNK as u64 + 1 + 4);
        assert!(!consume(reader, &log, Some(point)), "it lived");
    }
    assert!(consume(reader, &log, None), "the last consumer failed");
    judge(&log);
}

/// Every order was handled, and each has one identity, however often it was handled.
fn judge(log: &Path) {
    let text = fs::read_to_string(log).unwrap();
    let mut identities = BTreeMap::<u64, BTreeSet<&str>>::new();
    for line in text.lines() {
        let (id, identity) = line.split_once(' ').unwrap();
        let id = id.parse().unwrap();
        identities.entry(id).or_default().insert(identity);
    }
    assert!(identities.keys().copied().eq(0..ORDERS));
    let all: BTreeSet<&str> = identities.values().flatten().copied().collect();
    assert!(identities.values().all(|it| it.len() == 1));
    assert_eq!(all.len(), identities.len());
    let repeated = text.lines().count() - identities.len();
    assert!(repeated > 50, "only {repeated} records came again");
}

#[test]
fn every_record_is_handled_and_duplicates_have_their_identity() {
    let folder = Folder::new();
    loses_nothing(&folder.writer(), &folder.reader());
}
