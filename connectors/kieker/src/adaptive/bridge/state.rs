//! The state of a bridge, without I/O.
//!
//! A slot is *pending* while the last verdict that was sent differs from the present one, or is none.
//! Several changes of a slot are one entry, so that a slow program costs at most its slots.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::pattern::PatternList;
use tokio::sync::Notify;

use crate::adaptive::error::{ErrorCode, WireError};
use crate::adaptive::wire::{self, Hello, MAX_SLOTS, Stats, Version, feature};

/// The features that this end knows.
const FEATURES: i32 = feature::PUSH | feature::BATCH | feature::SNAPSHOT | feature::FRAMED;

/// The most memory that the signatures of a program may take, in bytes.
const MAX_SIGNATURE_MEMORY: usize = 64 << 20;

/// The memory of a signature beside its bytes.
const SIGNATURE_OVERHEAD: usize = 128;

/// Names a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PeerId(u64);

/// The patterns, the verdicts on all known signatures, and the connected programs.
#[derive(Debug, Default)]
pub(super) struct State {
    patterns: Arc<PatternList>,
    /// Counts changes of the patterns.
    epoch: i64,
    /// The verdicts; one that no program uses is removed.
    signatures: HashMap<Arc<str>, Arc<Signature>>,
    peers: BTreeMap<PeerId, Peer>,
    next: u64,
}

/// The effect of a change of the patterns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Change {
    /// Programs with a probe that was switched.
    pub programs: usize,
    /// Slots of theirs that were switched.
    pub slots: usize,
}

/// A connected program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// The number of its connection.
    pub number: u64,
    /// The name that it gave.
    pub agent: String,
    /// Its address.
    pub address: SocketAddr,
    /// The number of its probes.
    pub slots: usize,
    /// The number of active ones.
    pub active: usize,
    /// The signatures of its probes by slot, and whether each is active. The last ones are left out
    /// if there are too many.
    pub signatures: Vec<(Arc<str>, bool)>,
    /// Slots whose verdict waits to be sent.
    pub waiting: usize,
    /// Its last counts.
    pub stats: Option<Stats>,
}

/// A signature and its verdict, which all its slots share.
#[derive(Debug)]
struct Signature {
    text: Arc<str>,
    /// Read and written under the bridge's lock.
    is_active: AtomicBool,
}

impl Signature {
    fn is_active(&self) -> bool {
        self.is_active.load(Ordering::Relaxed)
    }
}

/// A connected program.
#[derive(Debug)]
pub(crate) struct Peer {
    hello: Hello,
    address: SocketAddr,
    wake: Arc<Notify>,
    slots: Vec<Slot>,
    /// The slots whose verdict is to be sent.
    pending: BTreeSet<u32>,
    memory: usize,
    /// Whether the answer to the Hello was sent.
    is_greeted: bool,
    /// The number of the last question for a sign of life.
    pub(crate) ping: Option<i64>,
    pub(crate) stats: Option<Stats>,
    /// The error after which nothing is sent.
    pub(crate) farewell: Option<WireError>,
}

#[derive(Debug)]
struct Slot {
    signature: Arc<Signature>,
    /// The last verdict that was sent; `None` while a request waits for its answer.
    sent: Option<bool>,
}

impl Peer {
    /// Creates a program that has said Hello. The answer has what both ends can.
    ///
    /// # Errors
    ///
    /// The versions do not fit.
    pub(super) fn new(
        mut hello: Hello,
        address: SocketAddr,
        wake: Arc<Notify>,
    ) -> Result<Self, WireError> {
        if hello.major < wire::MAJOR {
            return Err(refused(ErrorCode::Version, None, "the version of a Hello"));
        }
        if hello.max_slots < 0 {
            return Err(refused(ErrorCode::Malformed, None, "the slots of a Hello"));
        }
        hello.major = wire::MAJOR;
        hello.minor = 0;
        hello.features &= FEATURES;
        hello.max_slots = hello.max_slots.min(MAX_SLOTS.cast_signed());
        Ok(Self {
            hello,
            address,
            wake,
            slots: Vec::new(),
            pending: BTreeSet::new(),
            memory: 0,
            is_greeted: false,
            ping: None,
            stats: None,
            farewell: None,
        })
    }

    const fn has(&self, feature: i32) -> bool {
        self.hello.features & feature != 0
    }

    /// Notes whether the verdict on this slot is to be sent. Returns whether it differs from the last
    /// one that was sent.
    fn review(&mut self, slot: u32) -> bool {
        let Some(it) = self.slots.get(index(slot)) else {
            return false;
        };
        let differs = it.sent != Some(it.signature.is_active());
        if differs && (it.sent.is_none() || self.has(feature::PUSH)) {
            self.pending.insert(slot);
        } else {
            self.pending.remove(&slot);
        }
        differs
    }

    /// Marks the verdict on a slot as sent, and returns its entry.
    fn entry(&mut self, slot: u32) -> Option<(u32, bool)> {
        let it = self.slots.get_mut(index(slot))?;
        let is_active = it.signature.is_active();
        it.sent = Some(is_active);
        Some((slot, is_active))
    }

    fn next(&mut self, epoch: i64, out: &mut Vec<u8>) -> bool {
        if !self.is_greeted {
            self.is_greeted = true;
            let answer = Hello {
                agent: concat!("baler ", env!("CARGO_PKG_VERSION")).to_owned(),
                ..self.hello.clone()
            };
            wire::push_hello(&answer, out);
        }
        if let Some(error) = self.farewell.take() {
            wire::push_error(error.code, error.slot, &error.to_string(), out);
            return false;
        }
        if let Some(nonce) = self.ping.take() {
            wire::push_pong(nonce, out);
        }
        let is_answered = |slot: &u32| {
            let slot = self.slots.get(index(*slot));
            slot.is_some_and(|slot| slot.sent.is_some())
        };
        let most_changed = self.pending.len() * 2 > self.slots.len();
        // A snapshot is no answer to a request.
        if self.pending.len() > 1
            && self.has(feature::SNAPSHOT)
            && most_changed
            && self.pending.iter().all(is_answered)
        {
            self.pending.clear();
            let slots = (0..MAX_SLOTS).zip(&mut self.slots).map(|(slot, it)| {
                let is_active = it.signature.is_active();
                it.sent = Some(is_active);
                (slot, is_active)
            });
            let verdicts: Vec<_> = slots.collect();
            wire::push_snapshot(epoch, verdicts.into_iter(), out);
            return true;
        }
        let mut verdicts = Vec::new();
        while verdicts.len() < wire::BATCH_ENTRIES {
            let Some(slot) = self.pending.pop_first() else {
                break;
            };
            verdicts.extend(self.entry(slot));
        }
        if verdicts.len() > 1 && self.has(feature::BATCH) {
            wire::push_batch(Version::V2, verdicts.into_iter(), out);
        } else {
            for (slot, is_active) in verdicts {
                wire::push_update(Version::V2, slot, is_active, out);
            }
        }
        true
    }

    /// Describes it. Each signature takes its bytes and an overhead from `room`.
    fn program(&self, id: PeerId, room: &mut usize) -> Program {
        let signatures = self.slots.iter().map(|slot| &slot.signature);
        let active = signatures.clone().filter(|it| it.is_active()).count();
        let signatures = signatures.map_while(|it| {
            let bytes = it.text.len() + SIGNATURE_OVERHEAD;
            *room = room.checked_sub(bytes)?;
            Some((Arc::clone(&it.text), it.is_active()))
        });
        Program {
            number: id.0,
            agent: self.hello.agent.clone(),
            address: self.address,
            slots: self.slots.len(),
            active,
            signatures: signatures.collect(),
            waiting: self.pending.len(),
            stats: self.stats,
        }
    }
}

impl State {
    pub(super) fn patterns(&self) -> Arc<PatternList> {
        Arc::clone(&self.patterns)
    }

    /// Returns the known signatures and their verdicts.
    pub(super) fn signatures(&self) -> Vec<(Arc<str>, bool)> {
        let signatures = self.signatures.iter();
        let verdicts = signatures.map(|(text, it)| (Arc::clone(text), it.is_active()));
        verdicts.collect()
    }

    pub(super) fn programs(&self, mut room: usize) -> Vec<Program> {
        let peers = self.peers.iter();
        peers
            .map(|(id, peer)| peer.program(*id, &mut room))
            .collect()
    }

    /// Puts patterns in force. `verdicts` are theirs on the signatures that were known before; later
    /// ones are matched here.
    pub(super) fn change(
        &mut self,
        patterns: Arc<PatternList>,
        verdicts: &HashMap<Arc<str>, bool>,
    ) -> Change {
        for (text, signature) in &self.signatures {
            let verdict = verdicts.get(text).copied();
            let is_active = verdict.unwrap_or_else(|| patterns.is_active(text));
            signature.is_active.store(is_active, Ordering::Relaxed);
        }
        self.patterns = patterns;
        self.epoch = self.epoch.wrapping_add(1);
        let mut change = Change::default();
        for peer in self.peers.values_mut() {
            let count = (0..MAX_SLOTS).zip(0..peer.slots.len());
            let switched = count.filter(|(slot, _)| peer.review(*slot)).count();
            change.slots += switched;
            change.programs += usize::from(switched > 0);
            if !peer.pending.is_empty() {
                peer.wake.notify_one();
            }
        }
        change
    }

    pub(super) fn connect(&mut self, peer: Peer) -> PeerId {
        let id = PeerId(self.next);
        self.next = self.next.wrapping_add(1);
        peer.wake.notify_one();
        self.peers.insert(id, peer);
        id
    }

    pub(super) fn disconnect(&mut self, id: PeerId) {
        let Some(peer) = self.peers.remove(&id) else {
            return;
        };
        for slot in peer.slots {
            // The table and this slot have it.
            if Arc::strong_count(&slot.signature) <= 2 {
                self.signatures.remove(&slot.signature.text);
            }
        }
    }

    pub(super) fn request(&mut self, id: PeerId, slot: u32, text: &str) -> Result<(), WireError> {
        let Some(peer) = self.peers.get_mut(&id) else {
            return Err(refused(ErrorCode::Internal, Some(slot), "a connection"));
        };
        if slot >= peer.hello.max_slots.cast_unsigned() {
            return Err(refused(ErrorCode::Limit, Some(slot), "a slot"));
        }
        let next = peer.slots.len();
        match peer.slots.get_mut(index(slot)) {
            Some(known) if *known.signature.text == *text => known.sent = None,
            Some(_) => {
                let reading = "another signature for a slot";
                return Err(refused(ErrorCode::NotAllowed, Some(slot), reading));
            }
            None if index(slot) != next => {
                let reading = "a slot that is not the next one";
                return Err(refused(ErrorCode::NotAllowed, Some(slot), reading));
            }
            None => {
                let memory = text.len() + SIGNATURE_OVERHEAD;
                peer.memory += memory;
                if peer.memory > MAX_SIGNATURE_MEMORY {
                    let reading = "the memory of the signatures";
                    return Err(refused(ErrorCode::Limit, Some(slot), reading));
                }
                let signature = if let Some(known) = self.signatures.get(text) {
                    Arc::clone(known)
                } else {
                    let text: Arc<str> = text.into();
                    let is_active = self.patterns.is_active(&text).into();
                    let signature = Arc::new(Signature { text, is_active });
                    let text = Arc::clone(&signature.text);
                    self.signatures.insert(text, Arc::clone(&signature));
                    signature
                };
                let sent = None;
                peer.slots.push(Slot { signature, sent });
            }
        }
        peer.review(slot);
        peer.wake.notify_one();
        Ok(())
    }

    pub(super) fn with_peer(&mut self, id: PeerId, change: impl FnOnce(&mut Peer)) {
        if let Some(peer) = self.peers.get_mut(&id) {
            change(peer);
            peer.wake.notify_one();
        }
    }

    pub(super) fn next(&mut self, id: PeerId, out: &mut Vec<u8>) -> bool {
        let epoch = self.epoch;
        let peer = self.peers.get_mut(&id);
        peer.is_some_and(|peer| peer.next(epoch, out))
    }

    pub(super) fn memory(&self, id: PeerId) -> usize {
        self.peers.get(&id).map_or(0, |peer| peer.memory)
    }

    #[cfg(test)]
    fn known(&self) -> usize {
        self.signatures.len()
    }
}

/// The place of a slot. Slots are below [`MAX_SLOTS`].
const fn index(slot: u32) -> usize {
    slot as usize
}

fn refused(code: ErrorCode, slot: Option<u32>, reading: &'static str) -> WireError {
    WireError {
        code,
        offset: 0,
        slot,
        reading,
    }
}

#[cfg(test)]
mod tests;
