//! The end that decides which probes record: patterns, verdicts, and the slots of each program.

mod state;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::pattern::{Action, ListFull, PatternList, Rule};
use tokio::sync::Notify;

use super::error::WireError;
use super::wire::Hello;
use state::State;
pub use state::{Change, Program};
pub(crate) use state::{Peer, PeerId};

/// Decides which probes of all connected programs record, by one list of patterns.
///
/// A change of the patterns goes to each program as the difference from the verdicts that it has. It
/// is applied when the call returns, and sent soon after. A slow program delays no other.
#[derive(Debug, Default)]
pub struct Bridge {
    state: Mutex<State>,
    /// Held while patterns change, so that matching them needs no lock of the state.
    changing: Mutex<()>,
}

impl Bridge {
    /// Creates a bridge with these patterns.
    pub fn new(patterns: PatternList) -> Self {
        let bridge = Self::default();
        bridge.set_patterns(patterns);
        bridge
    }

    /// Replaces all patterns.
    pub fn set_patterns(&self, patterns: PatternList) -> Change {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        self.change(Arc::new(patterns), |patterns, signature, _| {
            patterns.is_active(signature)
        })
    }

    /// Adds a pattern that takes precedence over all others.
    ///
    /// # Errors
    ///
    /// The list is full; it stays as it was.
    pub fn push(&self, rule: Rule) -> Result<Change, ListFull> {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut patterns = PatternList::clone(&self.lock().patterns());
        patterns.push(rule.clone())?;
        // It takes precedence, so it alone is matched.
        Ok(self.change(Arc::new(patterns), |_, signature, was_active| {
            match rule.pattern.matches(signature) {
                true => rule.action == Action::Activate,
                false => was_active,
            }
        }))
    }

    /// Decides on all known signatures before the state is locked, so that connections go on.
    fn change(
        &self,
        patterns: Arc<PatternList>,
        decide: impl Fn(&PatternList, &str, bool) -> bool,
    ) -> Change {
        let signatures = self.lock().signatures();
        let verdicts = signatures.into_iter().map(|(signature, was_active)| {
            let is_active = decide(&patterns, &signature, was_active);
            (signature, is_active)
        });
        let verdicts = verdicts.collect();
        self.lock().change(patterns, &verdicts)
    }

    /// Returns the patterns.
    pub fn patterns(&self) -> Arc<PatternList> {
        self.lock().patterns()
    }

    /// Returns the connected programs, the oldest connection first. Their signatures take at most
    /// about this number of bytes in all.
    pub fn programs(&self, max_signature_bytes: usize) -> Vec<Program> {
        self.lock().programs(max_signature_bytes)
    }

    /// Adds a program. `wake` is notified when there is something to send.
    ///
    /// # Errors
    ///
    /// The versions do not fit.
    pub(crate) fn connect(
        &self,
        hello: Hello,
        address: SocketAddr,
        wake: &Arc<Notify>,
    ) -> Result<PeerId, WireError> {
        let peer = Peer::new(hello, address, Arc::clone(wake))?;
        Ok(self.lock().connect(peer))
    }

    /// Removes a program.
    pub(crate) fn disconnect(&self, peer: PeerId) {
        self.lock().disconnect(peer);
    }

    /// Takes a signature of a program.
    ///
    /// # Errors
    ///
    /// The slot is not the next one, or a limit is exceeded.
    pub(crate) fn request(
        &self,
        peer: PeerId,
        slot: u32,
        signature: &str,
    ) -> Result<(), WireError> {
        self.lock().request(peer, slot, signature)
    }

    /// Changes the state of a program, and wakes its connection.
    pub(crate) fn with_peer(&self, peer: PeerId, change: impl FnOnce(&mut Peer)) {
        self.lock().with_peer(peer, change);
    }

    /// Appends what is to be sent next. Returns whether more may come after it.
    pub(crate) fn next(&self, peer: PeerId, out: &mut Vec<u8>) -> bool {
        self.lock().next(peer, out)
    }

    /// Returns the approximate memory of a program's signatures.
    pub(crate) fn memory(&self, peer: PeerId) -> usize {
        self.lock().memory(peer)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
