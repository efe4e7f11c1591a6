//! Texts that were found at places among words.

use crate::record::row::INTERNED;
use crate::record::words::text_place;

/// How many texts are remembered: a power of two.
const PLACES: usize = 256;

/// The ids of texts by what fields say of them: most rows name one that a row shortly before has
/// named, and its place is sooner compared than its text.
#[derive(Debug)]
pub(super) struct PlacedTexts {
    /// [`PLACES`] of them, or none before the first.
    slots: Vec<Placed>,
    /// What the places are in; 0 where that is not known.
    source: u64,
    /// Counts sources and batches, so that nothing has to be wiped between them; never 0.
    round: u32,
}

/// A text that was found.
#[derive(Debug, Clone, Copy, Default)]
struct Placed {
    /// In which round; none has number 0.
    round: u32,
    /// What a field said of it.
    tag: u32,
    id: u32,
}

impl Default for PlacedTexts {
    fn default() -> Self {
        Self {
            slots: Vec::new(),
            source: 0,
            round: 1,
        }
    }
}

impl PlacedTexts {
    /// From now on places are in this source; 0 is never the same one as before.
    pub(super) fn look_into(&mut self, source: u64) {
        if source == 0 || source != self.source {
            self.source = source;
            self.forget();
        }
    }

    /// From now on ids are another batch's.
    pub(super) fn forget(&mut self) {
        self.round = self.round.wrapping_add(1);
        if self.round == 0 {
            // After four billion rounds the numbers begin anew.
            self.slots.clear();
            self.round = 1;
        }
    }

    /// The id of the text of which a field says this, if it was found in this round.
    #[inline(always)]
    pub(super) fn known(&self, tag: u32) -> Option<u32> {
        let placed = self.slots.get(slot_of(tag))?;
        (placed.tag == tag && placed.round == self.round).then_some(placed.id)
    }

    /// Remembers a text; not one that is interned, whose number is no place.
    pub(super) fn found(&mut self, tag: u32, id: u32) {
        debug_assert!(tag & INTERNED == 0, "an interned string has no place");
        self.slots.resize(PLACES, Placed::default());
        let round = self.round;
        if let Some(slot) = self.slots.get_mut(slot_of(tag)) {
            *slot = Placed { round, tag, id };
        }
    }
}

#[inline(always)]
fn slot_of(tag: u32) -> usize {
    text_place(tag).0 % PLACES
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_known_in_its_round_alone() {
        let mut texts = PlacedTexts::default();
        let [one, other] = [7 << 16 | 20, 8 << 16 | 20];
        texts.look_into(4);
        assert_eq!(texts.known(one), None);
        texts.found(one, 3);
        texts.look_into(4);
        assert_eq!((texts.known(one), texts.known(other)), (Some(3), None));
        // Another batch, another source, one that is not known twice.
        texts.forget();
        assert_eq!(texts.known(one), None);
        for source in [5, 0, 0] {
            texts.look_into(source);
            assert_eq!(texts.known(one), None, "{source}");
            texts.found(one, 3);
            assert_eq!(texts.known(one), Some(3));
        }
        // Numbers that begin anew find nothing of four billion rounds ago.
        texts.round = u32::MAX;
        texts.found(one, 3);
        texts.forget();
        assert_eq!(texts.known(one), None);
    }
}
