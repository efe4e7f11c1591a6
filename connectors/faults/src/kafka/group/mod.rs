//! Rules of Apache Kafka's groups that librdkafka's mock breaks, kept before it.
//!
//! Only the versions without tags are understood, so newer ones are not offered.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::splice::Splice;

const OFFSET_COMMIT: i16 = 8;
const OFFSET_FETCH: i16 = 9;
const JOIN_GROUP: i16 = 11;
const LEAVE_GROUP: i16 = 13;
const SYNC_GROUP: i16 = 14;

/// The newest versions that are understood.
pub(super) const NEWEST: [(i16, i16); 5] = [
    (OFFSET_COMMIT, 7),
    (OFFSET_FETCH, 5),
    (JOIN_GROUP, 5),
    (LEAVE_GROUP, 2),
    (SYNC_GROUP, 3),
];

const REBALANCE_IN_PROGRESS: i16 = 27;

/// How long what the leader deals waits for members that do not ask for it.
const PATIENCE: Duration = Duration::from_secs(2);

/// How long what one connection said takes at most to be read before what another says after it.
const IN_ORDER: Duration = Duration::from_millis(20);

/// The groups whose members connect through a proxy.
#[derive(Debug, Default)]
pub(super) struct Groups {
    groups: Mutex<BTreeMap<Name, Group>>,
    changed: Condvar,
}

type Name = Box<[u8]>;

#[derive(Debug, Default)]
struct Group {
    /// Whether all members have joined and the leader has not yet dealt the partitions.
    completing: bool,
    generation: i32,
    /// How many members the leader deals partitions to.
    members: usize,
    /// Those who asked for theirs.
    synced: BTreeSet<Name>,
    /// What was committed beside the mock, by topic and partition.
    beside: BTreeMap<(Name, i32), i64>,
}

/// A request of a member whose answer is to be looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Question {
    group: Name,
    version: i16,
    what: What,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum What {
    Join,
    Sync,
    /// By topic and partition.
    Commit(BTreeMap<(Name, i32), i64>),
    Fetch,
}

/// What a member says before its request is passed on.
enum Said {
    Joins,
    Leaves,
    /// It asks for its partitions, and deals them if it leads.
    Syncs {
        generation: i32,
        member: Name,
        leads: bool,
    },
    Other,
}

impl Groups {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<Name, Group>> {
        self.groups.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks at a request before it is passed on; a leader's waits for those of the others, as the
    /// mock sends a member back that asks after the leader has dealt.
    pub(super) fn asked(&self, request: &[u8]) -> Option<(i32, Question)> {
        let (number, group, said, question) = read(request)?;
        match said {
            Said::Syncs {
                generation,
                leads: true,
                ..
            } => self.wait_for_members(&group, generation),
            // The rest of the members are waited for, or more.
            Said::Joins | Said::Leaves => {
                self.lock().entry(group).or_default().completing = false;
            }
            Said::Syncs { .. } | Said::Other => {}
        }
        Some((number, question?))
    }

    /// Looks at a request after it was passed on.
    pub(super) fn passed_on(&self, request: &[u8]) {
        let Some((_, group, said, _)) = read(request) else {
            return;
        };
        if let Said::Syncs {
            generation, member, ..
        } = said
        {
            let mut groups = self.lock();
            let state = groups.entry(group).or_default();
            if state.generation == generation {
                state.synced.insert(member);
            }
            drop(groups);
            self.changed.notify_all();
        }
    }

    fn wait_for_members(&self, group: &[u8], generation: i32) {
        let waits = |groups: &mut BTreeMap<Name, Group>| {
            groups.get(group).is_some_and(|state| {
                // The leader is one of them, and asks last.
                state.generation == generation && state.synced.len() + 1 < state.members
            })
        };
        let waited = self
            .changed
            .wait_timeout_while(self.lock(), PATIENCE, waits);
        let (groups, _) = waited.unwrap_or_else(PoisonError::into_inner);
        // Nothing changes: the mock reads what several connections said in no order.
        let waited = self.changed.wait_timeout(groups, IN_ORDER);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    /// The answer as Apache Kafka would give it; nothing if it is malformed.
    pub(super) fn answered(&self, question: &Question, answer: &[u8]) -> Option<Vec<u8>> {
        let mut groups = self.lock();
        let state = groups.entry(question.group.clone()).or_default();
        let mut splice = Splice::new(answer);
        splice.i32()?;
        match &question.what {
            What::Join => state.joined(&mut splice, question.version)?,
            What::Sync => state.completing = false,
            What::Commit(offsets) => {
                state.committed(&mut splice, question.version, offsets)?;
            }
            What::Fetch => state.fetched(&mut splice, question.version)?,
        }
        Some(splice.rest())
    }
}

impl Group {
    fn joined(&mut self, splice: &mut Splice<'_>, version: i16) -> Option<()> {
        if version >= 2 {
            splice.i32()?;
        }
        if splice.i16()? != 0 {
            return Some(());
        }
        let generation = splice.i32()?;
        // The protocol, the leader, the member itself.
        for _ in 0..3 {
            splice.string(false)?;
        }
        let members = splice.count(false)?;
        if generation != self.generation {
            self.synced.clear();
            self.members = 0;
        }
        self.generation = generation;
        self.completing = true;
        // Only the leader is told.
        self.members = self.members.max(members);
        Some(())
    }

    /// Takes a commit that the mock refused while members are waited for: Apache Kafka refuses it
    /// only after that, until the leader has dealt (`ClassicGroup.validateOffsetCommit`).
    fn committed(
        &mut self,
        splice: &mut Splice<'_>,
        version: i16,
        offsets: &BTreeMap<(Name, i32), i64>,
    ) -> Option<()> {
        if version >= 3 {
            splice.i32()?;
        }
        for _ in 0..splice.count(false)? {
            let topic = splice.copy_string()?;
            for _ in 0..splice.count(false)? {
                let partition = (topic.clone(), splice.i32()?);
                let offset = offsets.get(&partition);
                let error = splice.take_i16()?;
                let taken = error == REBALANCE_IN_PROGRESS && !self.completing;
                if taken && let Some(offset) = offset {
                    self.beside.insert(partition, *offset);
                } else if error == 0 {
                    // The mock has a later one.
                    self.beside.remove(&partition);
                }
                splice.put(&if taken { 0 } else { error }.to_be_bytes());
            }
        }
        Some(())
    }

    fn fetched(&self, splice: &mut Splice<'_>, version: i16) -> Option<()> {
        if version >= 3 {
            splice.i32()?;
        }
        for _ in 0..splice.count(false)? {
            let topic = splice.copy_string()?;
            for _ in 0..splice.count(false)? {
                let partition = (topic.clone(), splice.i32()?);
                let told = splice.take_i64()?;
                let offset = self.beside.get(&partition).copied();
                splice.put(&offset.unwrap_or(told).to_be_bytes());
                if version >= 5 {
                    splice.i32()?;
                }
                splice.string(false)?;
                splice.i16()?;
            }
        }
        Some(())
    }
}

fn read(request: &[u8]) -> Option<(i32, Name, Said, Option<Question>)> {
    let mut splice = Splice::new(request);
    let key = splice.i16()?;
    let version = splice.i16()?;
    let number = splice.i32()?;
    if !NEWEST
        .iter()
        .any(|(known, newest)| *known == key && version <= *newest)
    {
        return None;
    }
    splice.string(false)?;
    let group = splice.copy_string()?;
    let (said, what) = match key {
        JOIN_GROUP => (Said::Joins, Some(What::Join)),
        LEAVE_GROUP => (Said::Leaves, None),
        SYNC_GROUP => {
            let generation = splice.i32()?;
            let member = splice.copy_string()?;
            if version >= 3 {
                splice.string(false)?;
            }
            let leads = splice.count(false)? > 0;
            let said = Said::Syncs {
                generation,
                member,
                leads,
            };
            (said, Some(What::Sync))
        }
        OFFSET_COMMIT => (
            Said::Other,
            Some(What::Commit(offsets(&mut splice, version)?)),
        ),
        _ => (Said::Other, Some(What::Fetch)),
    };
    let question = what.map(|what| Question {
        group: group.clone(),
        version,
        what,
    });
    Some((number, group, said, question))
}

/// What a commit holds, after the group.
fn offsets(splice: &mut Splice<'_>, version: i16) -> Option<BTreeMap<(Name, i32), i64>> {
    if version >= 1 {
        splice.i32()?;
        splice.string(false)?;
    }
    if version >= 7 {
        splice.string(false)?;
    }
    if (2..=4).contains(&version) {
        splice.take_i64()?;
    }
    let mut offsets = BTreeMap::new();
    for _ in 0..splice.count(false)? {
        let topic = splice.copy_string()?;
        for _ in 0..splice.count(false)? {
            let partition = splice.i32()?;
            offsets.insert((topic.clone(), partition), splice.take_i64()?);
            if version >= 6 {
                splice.i32()?;
            }
            if version == 1 {
                splice.take_i64()?;
            }
            splice.string(false)?;
        }
    }
    Some(offsets)
}

#[cfg(test)]
mod tests;
