//! What a stream's reader does beyond the contract.

use std::slice;
use std::time::{Duration, Instant};

use baler_common::transport::{ChunkReader, RetryClass, Verdict};
use baler_connector_testkit::faults::{RabbitMqNode, TcpProxy};
use baler_connector_testkit::{PATIENCE, Tap, drive, within_patience};
use tempfile::TempDir;

use crate::support::{self, fill, fill_from, fresh_name, reader, shared_node};

/// Writes so many chunks to a new stream; yields its URI.
fn filled(node: &RabbitMqNode, chunks: usize, settings: &str) -> String {
    let queue = fresh_name("stream");
    let uri = node.uri(&format!("?queue={queue}&queue_type=stream{settings}"));
    fill(&uri, chunks);
    uri
}

/// The sequence numbers that come first to a reader.
fn first(uri: &str, chunks: usize) -> Vec<u64> {
    let mut tap = Tap::new(reader(uri));
    drive(
        "chunks come",
        &mut [],
        slice::from_mut(&mut tap),
        |_, taps| taps[0].distinct() >= chunks,
    );
    let labels = tap.received().iter();
    labels.map(|label| label.sequence).take(chunks).collect()
}

#[test]
fn stream_is_read_from_where_it_is_asked() {
    let node = shared_node();
    let uri = filled(&node, 100, "");
    assert_eq!(first(&uri, 100), (0..100).collect::<Vec<_>>());
    // Each reader reads all of it.
    assert_eq!(first(&format!("{uri}&offset=first"), 2), [0, 1]);
    assert_eq!(first(&format!("{uri}&offset=37"), 3), [37, 38, 39]);
    assert!(first(&format!("{uri}&offset=last"), 1)[0] > 0);
    assert_eq!(first(&format!("{uri}&offset=timestamp:0"), 1), [0]);
    let mut next = Tap::new(reader(&format!("{uri}&offset=next")));
    within_patience("it reads", || {
        next.poll(Duration::from_millis(20));
        (next.reader().stats().connected == Some(true)).then_some(())
    });
    assert_eq!(next.distinct(), 0);
}

#[test]
fn position_is_that_of_what_is_settled() {
    let node = shared_node();
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("position");
    let uri = filled(&node, 50, &format!("&position_file={}", file.display()));
    let mut tap = Tap::holding(reader(&uri), 20);
    drive(
        "it holds some",
        &mut [],
        slice::from_mut(&mut tap),
        |_, taps| taps[0].unsettled().len() == 20,
    );
    let held = tap.unsettled();
    // All but the eighth: the position stops there, and saves itself by time.
    for label in held.iter().filter(|label| label.sequence != 7) {
        tap.settle(*label, Verdict::Ack);
    }
    within_patience("the position is saved", || {
        tap.poll(Duration::from_millis(10));
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        text.contains("next 7\n").then_some(())
    });
    // Another reader must not have it.
    let mut other = reader(&uri);
    let error = other.receive(Instant::now() + PATIENCE).unwrap_err();
    assert!(error.message.contains("another reader"), "{error}");
    drop(other);
    let (_, report) = tap.close(Instant::now() + PATIENCE);
    assert!(report.error.is_none(), "{report:?}");
    assert_eq!(first(&uri, 3), [7, 8, 9]);
}

/// Deletes the stream of a URI, and writes chunks to one of the same name.
fn made_anew(node: &RabbitMqNode, uri: &str, chunks: usize) {
    let queue = uri.split("queue=").nth(1).unwrap();
    let queue = queue.split('&').next().unwrap();
    node.control(&["delete_queue", queue]).unwrap();
    fill_from(uri, 2, chunks);
}

#[test]
fn stream_that_was_made_anew_is_read_from_its_beginning() {
    let node = shared_node();
    // The new one ends before the position, or after it.
    for chunks in [5, 80] {
        let folder = TempDir::new().unwrap();
        let file = format!("&position_file={}", folder.path().join("p").display());
        let uri = filled(&node, 50, &file);
        assert_eq!(first(&uri, 50).len(), 50);
        made_anew(&node, &uri, chunks);
        let mut reader = reader(&uri);
        within_patience("it is said", || {
            let received = reader.receive(Instant::now() + PATIENCE);
            let error = received.err()?;
            assert!(error.message.contains("made anew"), "{error}");
            Some(())
        });
        assert_eq!(reader.stats().removals, 1);
        drop(reader);
        let mut tap = Tap::new(support::reader(&uri));
        drive("all come", &mut [], slice::from_mut(&mut tap), |_, taps| {
            taps[0].distinct() == chunks
        });
    }
}

#[test]
fn stream_that_is_made_anew_beside_its_reader_is_read_from_its_beginning() {
    let node = shared_node();
    let uri = filled(&node, 50, "");
    let mut tap = Tap::new(reader(&uri));
    drive("it reads", &mut [], slice::from_mut(&mut tap), |_, taps| {
        taps[0].distinct() == 50
    });
    made_anew(&node, &uri, 20);
    drive(
        "the new ones come",
        &mut [],
        slice::from_mut(&mut tap),
        |_, taps| taps[0].distinct() == 70,
    );
    assert_eq!(tap.reader().stats().removals, 1);
}

#[test]
fn position_of_another_stream_is_a_final_error() {
    let node = shared_node();
    let folder = TempDir::new().unwrap();
    let file = format!("&position_file={}", folder.path().join("p").display());
    let uri = filled(&node, 5, &file);
    assert_eq!(first(&uri, 5).len(), 5);
    let other = filled(&node, 5, &file);
    let error = reader(&other).receive(Instant::now() + PATIENCE);
    assert_eq!(error.unwrap_err().class, RetryClass::Final);
}

#[test]
fn rejected_chunk_of_a_stream_is_passed_and_a_retried_one_comes_again() {
    let node = shared_node();
    let uri = filled(&node, 3, "");
    let mut tap = Tap::holding(reader(&uri), 3);
    drive("all come", &mut [], slice::from_mut(&mut tap), |_, taps| {
        taps[0].unsettled().len() == 3
    });
    let held = tap.unsettled();
    tap.settle(held[0], Verdict::Reject);
    tap.settle(held[1], Verdict::Retry);
    tap.settle(held[2], Verdict::Ack);
    drive(
        "one comes again",
        &mut [],
        slice::from_mut(&mut tap),
        |_, taps| taps[0].received().len() == 4,
    );
    assert_eq!(tap.unsettled(), [held[1]]);
    assert!(tap.deliveries().all(|delivery| delivery.redelivered));
}

#[test]
fn lost_connection_goes_on_at_the_watermark() {
    let node = shared_node();
    let proxy = TcpProxy::start().unwrap();
    proxy.set_target(Some(node.address()));
    let uri = filled(&node, 60, "");
    let rest = uri.split_once('?').unwrap().1;
    let mut tap = Tap::holding(reader(&format!("amqp://{}?{rest}", proxy.address())), 30);
    drive(
        "it holds some",
        &mut [],
        slice::from_mut(&mut tap),
        |_, taps| taps[0].unsettled().len() == 30,
    );
    for label in tap.unsettled().into_iter().take(10) {
        tap.settle(label, Verdict::Ack);
    }
    proxy.cut();
    within_patience("it connects again", || {
        tap.poll(Duration::from_millis(10));
        (tap.reader().stats().reconnects >= 1).then_some(())
    });
    tap.set_demand(1 << 20);
    tap.acknowledge();
    drive("all come", &mut [], slice::from_mut(&mut tap), |_, taps| {
        taps[0].distinct() == 60
    });
    let again: Vec<_> = tap.received().iter().map(|label| label.sequence).collect();
    let at = again.iter().skip(30).position(|sequence| *sequence == 10);
    assert!(at.is_some(), "what was not settled came again: {again:?}");
    assert!(!again.iter().skip(30).any(|sequence| *sequence < 10));
}
