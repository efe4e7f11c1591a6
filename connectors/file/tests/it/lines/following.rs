//! A reader that follows, is killed and continues; and its promises to its owner.

use std::fs;
use std::time::{Duration, Instant};

use baler_common::transport::{Received, Settled, Verdict};
use baler_connector_testkit::within_patience;

use crate::lines::support::{Folder, all, append, receive};

const SOON: Duration = Duration::from_millis(250);

fn line(n: u32) -> String {
    format!("{{\"n\":{n}}}\n")
}

#[test]
fn the_position_never_passes_a_line_that_is_not_settled() {
    let folder = Folder::new();
    let log = folder.path("log");
    append(&log, (0..3_000).map(line).collect::<String>());
    let mut reader = folder.reader("jsonl", "log?position=p");
    let came = receive(&mut *reader, SOON);
    assert_eq!((came.records.len(), came.ended), (3_000, false));
    // All but the second.
    for token in [came.tokens[2], came.tokens[0]] {
        assert_eq!(reader.settle(token, Verdict::Ack).unwrap(), Settled::Done);
        assert_eq!(reader.settle(token, Verdict::Ack).unwrap(), Settled::Stale);
    }
    let closed = reader.close(Instant::now());
    assert_eq!(closed.unsettled, 1);
    let came = all(&mut *folder.reader("jsonl", "log?position=p"));
    assert_eq!(came.records.len(), 3_000 - 1_024);
    assert_eq!(came.records[0], "json n=1024");
    assert!(
        all(&mut *folder.reader("jsonl", "log?position=p"))
            .records
            .is_empty()
    );
}

/// A bad line comes again until somebody has kept it, also after a kill.
#[test]
fn a_bad_line_is_settled_when_it_is_kept() {
    let folder = Folder::new();
    append(&folder.path("log"), line(1) + "no\n" + &line(2));
    let open = || folder.reader("jsonl", "log?position=p");
    let mut reader = open();
    let came = receive(&mut *reader, SOON);
    assert_eq!((came.records.len(), came.damaged.len()), (2, 1));
    let bad = came.damaged[0].token.unwrap();
    for token in came.tokens.iter().filter(|token| **token != bad) {
        reader.settle(*token, Verdict::Ack).unwrap();
    }
    reader.settle(bad, Verdict::Retry).unwrap();
    assert!(matches!(
        reader.receive(Instant::now()).unwrap(),
        Received::Damaged(_)
    ));
    assert_eq!(reader.close(Instant::now()).unsettled, 1);

    let mut reader = open();
    let came = receive(&mut *reader, SOON);
    assert_eq!((came.records.len(), came.bad().len()), (2, 1));
    for token in came.tokens {
        reader.settle(token, Verdict::Reject).unwrap();
    }
    assert!(matches!(
        reader.receive(Instant::now()).unwrap(),
        Received::End
    ));
    let came = all(&mut *open());
    assert!(came.ended && came.records.is_empty() && came.damaged.is_empty());
}

#[test]
fn a_chunk_that_is_given_back_comes_again() {
    let folder = Folder::new();
    append(&folder.path("log"), line(1));
    let mut reader = folder.reader("jsonl", "log");
    let first = receive(&mut *reader, SOON);
    reader.settle(first.tokens[0], Verdict::Retry).unwrap();
    let Received::Chunk(again) = reader.receive(Instant::now()).unwrap() else {
        panic!("it does not come again");
    };
    assert!(again.redelivered);
    assert_eq!(again.token, first.tokens[0]);
    reader.settle(again.token, Verdict::Ack).unwrap();
    assert!(matches!(
        reader.receive(Instant::now() + SOON).unwrap(),
        Received::End
    ));
}

#[test]
fn no_more_chunks_come_than_are_demanded() {
    let folder = Folder::new();
    append(
        &folder.path("log"),
        (0..3_000).map(line).collect::<String>(),
    );
    let mut reader = folder.reader("jsonl", "log?follow");
    reader.set_demand(0);
    assert!(receive(&mut *reader, SOON).tokens.is_empty());
    reader.set_demand(1);
    let came = receive(&mut *reader, SOON);
    assert_eq!(came.tokens.len(), 1);
    reader.settle(came.tokens[0], Verdict::Ack).unwrap();
    assert_eq!(receive(&mut *reader, SOON).tokens.len(), 1);
}

/// Its owner waits for a target. Meanwhile the log is rotated, and the oldest file removed.
#[test]
fn files_that_are_removed_while_the_owner_waits_are_read() {
    let folder = Folder::new();
    let log = folder.path("log");
    append(&log, line(0));
    let mut reader = folder.reader("jsonl", "log?follow");
    assert_eq!(receive(&mut *reader, SOON).records, ["json n=0"]);
    for n in 1..4 {
        append(&log, line(n));
        // The thread that looks at the files must see each of them.
        let begun = Instant::now();
        within_patience("a look", || {
            (begun.elapsed() > Duration::from_secs(1)).then_some(())
        });
        fs::rename(&log, folder.path(&format!("log.{n}"))).unwrap();
    }
    append(&log, line(4));
    fs::remove_file(folder.path("log.1")).unwrap();
    fs::remove_file(folder.path("log.2")).unwrap();
    let mut records = Vec::new();
    within_patience("all lines", || {
        let came = receive(&mut *reader, SOON);
        assert!(came.damaged.is_empty(), "{:?}", came.bad());
        records.extend(came.records);
        (records.len() >= 4).then_some(())
    });
    records.sort();
    assert_eq!(records, ["json n=1", "json n=2", "json n=3", "json n=4"]);
}

#[test]
fn what_is_lost_is_reported() {
    let folder = Folder::new();
    let log = folder.path("log");
    append(&log, line(1));
    assert_eq!(
        all(&mut *folder.reader("jsonl", "log?follow")).records,
        ["json n=1"]
    );
    append(&log, line(2));
    fs::write(&log, line(3) + &line(4)).unwrap();
    let mut reader = folder.reader("jsonl", "log?follow");
    let came = all(&mut *reader);
    assert_eq!(came.records, ["json n=3", "json n=4"]);
    let [(offset, bytes, reason)] = came.bad()[..] else {
        panic!("{:?}", came.bad());
    };
    assert_eq!((offset, bytes), (8, &b""[..]));
    assert!(reason.contains("log: it has other content now"), "{reason}");
    assert!(reader.stats().counts.contains(&("losses", 1)));
}
