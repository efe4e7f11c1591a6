//! Chunks that cannot be passed on.

use std::io;
use std::sync::{Arc, Mutex};

use baler_common::transport::{
    ChunkReader, ReaderCapability, ReaderCloseReport, Received, RetryClass, Settled, Token,
    TransportError, Verdict,
};
use baler_connector_file::quarantine::{Poison, PutAside, Quarantine};
use baler_connector_testkit::{ChunkSource, MemoryLimits, MemoryMedium, MemoryReader, read_label};

use super::support::{contents, fill, relay, relay_of, set, soon};
use crate::relay::{Ended, Relay, RelayError, Stop};

/// A chunk that was put aside: whether it is sound, bytes, reason, whether its identity is known.
type KeptChunk = (bool, Vec<u8>, String, bool);

/// Keeps everything.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<KeptChunk>>>);

impl Quarantine for Kept {
    fn put_aside(&mut self, poison: Poison<'_>) -> io::Result<PutAside> {
        self.0.lock().unwrap().push((
            poison.is_sound,
            poison.bytes.to_vec(),
            poison.reason.to_owned(),
            poison.meta.is_some(),
        ));
        Ok(PutAside::Kept)
    }
}

/// Keeps nothing.
struct FullDisk;

impl Quarantine for FullDisk {
    fn put_aside(&mut self, _: Poison<'_>) -> io::Result<PutAside> {
        Err(io::Error::other("the disk is full"))
    }
}

fn keeping(relay: Relay) -> (Relay, Kept) {
    let kept = Kept::default();
    (relay.with_quarantine(kept.clone()), kept)
}

fn run_to_the_end(relay: &mut Relay) {
    assert_eq!(relay.run(Stop::default(), |_| true).unwrap(), Ended::End);
}

#[test]
fn a_refused_chunk_is_put_aside_and_the_others_pass() {
    let (from, to) = (MemoryMedium::default(), MemoryMedium::default());
    let labels = fill(&from, ChunkSource::new(1).take(50));
    from.end();
    to.refuse_next(RetryClass::Final);
    let (mut relay, kept) = keeping(relay(&from, &to));
    run_to_the_end(&mut relay);
    let stats = relay.close(soon()).stats;
    assert_eq!(
        (stats.forwarded, stats.quarantined, stats.refused),
        (49, 1, 1)
    );
    assert!(stats.adds_up() && from.is_empty());
    let kept = kept.0.lock().unwrap();
    let (is_sound, bytes, reason, known) = &kept[0];
    assert_eq!((*is_sound, *known, kept.len()), (true, true, 1));
    assert!(reason.contains("refused on demand"), "{reason}");
    let mut all = set(&contents(&to));
    all.insert(read_label(bytes));
    assert_eq!(all, labels);
}

#[test]
fn a_chunk_above_the_sinks_limit_is_put_aside_whole() {
    let limits = MemoryLimits {
        max_chunk_bytes: std::num::NonZeroUsize::new(500).unwrap(),
        ..MemoryLimits::default()
    };
    let (from, to) = (MemoryMedium::default(), MemoryMedium::new(limits));
    let mut source = ChunkSource::new(1);
    fill(
        &from,
        vec![
            source.next(0, 400),
            source.next(0, 501),
            source.next(0, 500),
        ],
    );
    from.end();
    let (mut relay, kept) = keeping(relay(&from, &to));
    run_to_the_end(&mut relay);
    let kept = kept.0.lock().unwrap();
    let (is_sound, bytes, reason, _) = &kept[0];
    assert_eq!((*is_sound, bytes.len(), to.len()), (true, 501, 2));
    assert_eq!(reason, "it has 501 bytes, the sink takes at most 500");
}

#[test]
fn without_a_quarantine_a_refused_chunk_stays_at_the_source() {
    let (from, to) = (MemoryMedium::default(), MemoryMedium::default());
    fill(&from, ChunkSource::new(1).take(1));
    to.refuse_next(RetryClass::Final);
    let mut relay = relay(&from, &to);
    let error = relay.run(Stop::default(), |_| true).unwrap_err();
    assert!(matches!(error, RelayError::Quarantine { .. }), "{error}");
    assert!(error.to_string().contains("refused on demand"), "{error}");
    let stats = relay.close(soon()).stats;
    assert_eq!((stats.given_back, stats.quarantined), (1, 0));
    assert!(stats.adds_up());
    assert_eq!(from.len(), 1);
}

#[test]
fn a_chunk_that_cannot_be_put_aside_is_given_back_and_ends_the_relay() {
    let (from, to) = (MemoryMedium::default(), MemoryMedium::default());
    fill(&from, ChunkSource::new(1).take(10));
    to.refuse_next(RetryClass::Final);
    let mut relay = relay(&from, &to).with_quarantine(FullDisk);
    let error = relay.run(Stop::default(), |_| true).unwrap_err();
    assert!(error.to_string().contains("the disk is full"), "{error}");
    let stats = relay.close(soon()).stats;
    assert_eq!((stats.forwarded, stats.given_back), (9, 1));
    assert_eq!((to.len(), from.len()), (9, 1));
}

/// A source whose medium carries nothing beside the bytes.
struct Bare(MemoryReader);

impl ChunkReader for Bare {
    fn capability(&self) -> &ReaderCapability {
        self.0.capability()
    }

    fn set_demand(&mut self, chunks: usize) {
        self.0.set_demand(chunks);
    }

    fn receive(&mut self, by: std::time::Instant) -> Result<Received, TransportError> {
        Ok(match self.0.receive(by)? {
            Received::Chunk(mut delivery) => {
                delivery.meta = None;
                Received::Chunk(delivery)
            }
            other => other,
        })
    }

    fn settle(&mut self, token: Token, verdict: Verdict) -> Result<Settled, TransportError> {
        self.0.settle(token, verdict)
    }

    fn close(self: Box<Self>, by: std::time::Instant) -> ReaderCloseReport {
        Box::new(self.0).close(by)
    }
}

#[test]
fn bytes_that_are_no_container_and_come_without_an_identity_are_put_aside() {
    let (from, to) = (MemoryMedium::default(), MemoryMedium::default());
    // The testkit's chunks are no containers.
    fill(&from, ChunkSource::new(1).take(2));
    from.end();
    let (mut relay, kept) = keeping(relay_of(Bare(from.reader()), to.writer()));
    run_to_the_end(&mut relay);
    let stats = relay.close(soon()).stats;
    assert_eq!((stats.quarantined, stats.refused), (2, 0));
    assert!(stats.adds_up() && from.is_empty() && to.is_empty());
    let kept = kept.0.lock().unwrap();
    assert!(kept.iter().all(|(is_sound, ..)| !is_sound));
    assert!(kept[0].2.contains("no container's"), "{}", kept[0].2);
}
