//! Random histories of a source over a medium that redelivers: which chunks are acknowledged, and
//! when.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::{Duration, Instant};

use baler_analysis::{Parcel, Source, Step};
use baler_common::transport::{
    ChunkReader, Delivery, Order, Origin, ReaderCapability, ReaderCloseReport, Received, Settled,
    Token, TransportError, Verdict,
};
use baler_connector_testkit::{Dice, each_schedule};
use bytes::Bytes;

use crate::support::chunk;

const CHUNKS: u64 = 10;

/// The chunks by number: encoded once, whatever the number of histories.
static ENCODED: LazyLock<Vec<Bytes>> = LazyLock::new(|| (0..CHUNKS).map(chunk).collect());

/// A queue that keeps unacknowledged chunks through the lives of its readers.
#[derive(Default)]
struct Queue {
    ready: VecDeque<u64>,
    out: BTreeMap<Token, u64>,
    next_token: u64,
    acknowledged: BTreeSet<u64>,
    /// Chunks whose parcels were all released, in some life: only these may be acknowledged.
    processed: BTreeSet<u64>,
    broken: bool,
}

#[derive(Clone)]
struct Reader {
    queue: Arc<Mutex<Queue>>,
    capability: ReaderCapability,
    demand: usize,
}

impl ChunkReader for Reader {
    fn capability(&self) -> &ReaderCapability {
        &self.capability
    }

    fn set_demand(&mut self, chunks: usize) {
        self.demand = chunks;
    }

    fn receive(&mut self, _by: Instant) -> Result<Received, TransportError> {
        let mut queue = self.queue.lock().unwrap();
        if queue.out.len() >= self.demand {
            return Ok(Received::Idle);
        }
        let Some(sequence) = queue.ready.pop_front() else {
            return Ok(Received::Idle);
        };
        let token = Token(queue.next_token);
        queue.next_token += 1;
        queue.out.insert(token, sequence);
        Ok(Received::Chunk(Delivery {
            token,
            bytes: ENCODED[usize::try_from(sequence).unwrap()].clone(),
            meta: None,
            origin: Origin {
                endpoint: "queue:".into(),
                lane: "0".into(),
                position: sequence,
            },
            redelivered: false,
            attempts: 0,
        }))
    }

    fn settle(&mut self, token: Token, verdict: Verdict) -> Result<Settled, TransportError> {
        let mut queue = self.queue.lock().unwrap();
        let Some(sequence) = queue.out.remove(&token) else {
            return Ok(Settled::Stale);
        };
        match verdict {
            Verdict::Retry => queue.ready.push_back(sequence),
            _ => {
                queue.broken |= !queue.processed.contains(&sequence);
                queue.acknowledged.insert(sequence);
            }
        }
        Ok(Settled::Done)
    }

    fn close(self: Box<Self>, _by: Instant) -> ReaderCloseReport {
        ReaderCloseReport::default()
    }
}

#[derive(Debug, Clone)]
enum Act {
    Receive,
    /// Releases one of the parcels in work, or fails it.
    LetGo {
        fails: bool,
    },
    /// One more clone of a parcel: the chunk is settled with the last one.
    Share,
    /// The medium repeats a chunk.
    Repeat(u64),
    /// The medium takes a delivery away: it comes again, the old token is stale.
    Revoke,
    Kill,
}

fn act(dice: &mut Dice) -> Act {
    match dice.below(20) {
        0..8 => Act::Receive,
        8..16 => Act::LetGo {
            fails: dice.once_in(5),
        },
        16 => Act::Share,
        17 => Act::Repeat(dice.below(ENCODED.len()) as u64),
        18 => Act::Revoke,
        _ => Act::Kill,
    }
}

/// A source's life: the parcels in work, with the sequences of their chunks.
struct Life {
    source: Source,
    parcels: Vec<(u64, Parcel)>,
    /// Chunks with a failed parcel, with the number of remaining clones.
    failed: BTreeSet<u64>,
}

impl Life {
    fn new(reader: &Reader) -> Self {
        Self {
            source: Source::new(Box::new(reader.clone())).with_demand(4),
            parcels: Vec::new(),
            failed: BTreeSet::new(),
        }
    }

    fn receive(&mut self) {
        let by = Instant::now();
        if let Step::Chunk(parcel) = self.source.step(by).unwrap() {
            let sequence = parcel.identity().unwrap().sequence;
            self.failed.remove(&sequence);
            self.parcels.push((sequence, parcel));
        }
    }

    fn let_go(&mut self, at: usize, fails: bool, queue: &Mutex<Queue>) {
        let (sequence, parcel) = self.parcels.swap_remove(at);
        if fails {
            parcel.fail();
            self.failed.insert(sequence);
        }
        let last = self.parcels.iter().all(|(other, _)| *other != sequence);
        if last && !self.failed.contains(&sequence) {
            queue.lock().unwrap().processed.insert(sequence);
        }
    }
}

#[test]
fn no_schedule_acknowledges_what_is_not_processed() {
    each_schedule(1_000, history);
}

fn history(dice: &mut Dice) {
    let queue = Arc::new(Mutex::new(Queue {
        ready: (0..CHUNKS).collect(),
        ..Queue::default()
    }));
    let reader = Reader {
        queue: Arc::clone(&queue),
        capability: ReaderCapability::new("queue", Order::Unordered),
        demand: 0,
    };
    let mut life = Life::new(&reader);
    let patience = Instant::now() + Duration::from_secs(20);
    for _ in 0..10 + dice.below(90) {
        match act(dice) {
            Act::Receive => life.receive(),
            Act::LetGo { fails } if !life.parcels.is_empty() => {
                let at = dice.below(life.parcels.len());
                life.let_go(at, fails, &queue);
            }
            Act::Share if !life.parcels.is_empty() => {
                let shared = life.parcels[dice.below(life.parcels.len())].clone();
                life.parcels.push(shared);
            }
            Act::LetGo { .. } | Act::Share => {}
            Act::Repeat(sequence) => queue.lock().unwrap().ready.push_back(sequence),
            Act::Revoke => {
                let mut queue = queue.lock().unwrap();
                if let Some((_, sequence)) = queue.out.pop_first() {
                    queue.ready.push_back(sequence);
                }
            }
            Act::Kill => {
                // Released but unsettled chunks are lost with the process.
                life = Life::new(&reader);
                let mut queue = queue.lock().unwrap();
                let out: Vec<u64> = std::mem::take(&mut queue.out).into_values().collect();
                queue.ready.extend(out);
            }
        }
        assert!(
            !queue.lock().unwrap().broken,
            "acknowledged and not processed"
        );
    }
    while queue.lock().unwrap().acknowledged.len() < ENCODED.len() && Instant::now() < patience {
        life.receive();
        if !life.parcels.is_empty() {
            life.let_go(0, false, &queue);
        }
    }
    let closed = life.source.close(Instant::now() + Duration::from_secs(1));
    closed.unwrap();
    let queue = queue.lock().unwrap();
    assert!(!queue.broken, "acknowledged and not processed");
    assert_eq!(queue.acknowledged.len(), ENCODED.len(), "chunks are stuck");
}
