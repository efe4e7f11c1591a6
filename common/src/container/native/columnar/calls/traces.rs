//! Which trace is in which place.

use super::nesting::{MAX_SLOTS, Row, Slot, Told};
use crate::container::num::to_usize;

/// How many traces are found at once.
const RECENT: usize = 64;

/// Traces and the places that they take; keeps its memory from table to table.
#[derive(Debug)]
pub(super) struct Traces {
    /// The places, of which the first ones are in use.
    slots: Vec<Slot>,
    used: usize,
    /// By a few bits of a trace's number, where it may be.
    recent: [u8; RECENT],
    /// How many traces may begin.
    most: usize,
    /// In the order in which they begin.
    pub(super) numbers: Vec<i64>,
    pub(super) sessions: Vec<u32>,
}

impl Default for Traces {
    fn default() -> Self {
        Self {
            slots: Vec::new(),
            used: 0,
            recent: [0; RECENT],
            most: 0,
            numbers: Vec::new(),
            sessions: Vec::new(),
        }
    }
}

/// What is told of a row, and its place.
#[derive(Debug, Clone, Copy)]
pub(super) struct Placed {
    pub(super) place: u8,
    /// Whether its session is that of its trace.
    pub(super) is_its_session: bool,
    pub(super) told: Told,
}

impl Traces {
    /// Begins a table in which so many traces may begin.
    pub(super) fn clear(&mut self, most: usize) {
        self.most = most;
        let used = self.slots.iter_mut().take(self.used);
        used.for_each(Slot::close);
        self.used = 0;
        self.recent = [0; RECENT];
        self.numbers.clear();
        self.sessions.clear();
    }

    /// Finds the place of a row, and tells what differs from what is expected there; `None` if there
    /// are more traces than there may be.
    #[inline]
    pub(super) fn tell(&mut self, row: Row) -> Option<Placed> {
        // The lowest bits of a trace's number count traces.
        let place = *self
            .recent
            .get(to_usize(row.trace.cast_unsigned()) % RECENT)?;
        match self.slots.get_mut(usize::from(place)) {
            Some(slot) if slot.has(row.trace) => Some(Placed {
                place,
                is_its_session: slot.session == row.session,
                told: slot.tell(&row),
            }),
            _ => {
                let Row {
                    trace,
                    session,
                    depth,
                    order,
                    begin,
                    end,
                } = row;
                self.look_for(trace, session, depth, order, begin, end)
            }
        }
    }

    /// As [`Self::tell`], of a trace that begins, or is not where it may be.
    ///
    /// Its parameters are those of the row, so that rows need not be put into memory for it.
    #[cold]
    #[inline(never)]
    fn look_for(
        &mut self,
        trace: i64,
        session: u32,
        depth: i64,
        order: i64,
        begin: i64,
        end: i64,
    ) -> Option<Placed> {
        let row = Row {
            trace,
            session,
            depth,
            order,
            begin,
            end,
        };
        let used = self.slots.get(..self.used)?;
        let known = used.iter().position(|slot| slot.has(row.trace));
        let at = match known {
            Some(at) => at,
            None if self.numbers.len() >= self.most => return None,
            None => {
                let free = used.iter().position(Slot::is_free);
                free.unwrap_or(self.used)
            }
        };
        if at >= MAX_SLOTS {
            return None;
        }
        let place = u8::try_from(at).ok()?;
        let recent = to_usize(row.trace.cast_unsigned()) % RECENT;
        *self.recent.get_mut(recent)? = place;
        if at == self.slots.len() {
            self.slots.push(Slot::new());
        }
        let slot = self.slots.get_mut(at)?;
        let told = if known.is_some() {
            slot.tell(&row)
        } else {
            self.numbers.push(row.trace);
            self.sessions.push(row.session);
            let is_first = at == self.used;
            self.used += usize::from(is_first);
            slot.begin(&row, is_first)
        };
        Some(Placed {
            place,
            is_its_session: slot.session == row.session,
            told,
        })
    }
}
