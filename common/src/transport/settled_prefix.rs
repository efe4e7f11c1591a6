//! How far a medium is settled, if its chunks are settled in any order.

use std::collections::BTreeMap;

/// The items of a medium from the first one on that is not settled.
///
/// Workers settle chunks in any order. A reader may commit a position only if all chunks before it
/// are settled. So it inserts each chunk that it hands out, settles it here, and takes the settled
/// ones from the front: they move the position.
///
/// ```
/// use baler_common::transport::SettledPrefix;
///
/// let mut chunks = SettledPrefix::default();
/// (10..13).for_each(|offset| chunks.insert(offset, "a chunk"));
/// assert!(chunks.settle(&11).is_some());
/// assert_eq!(chunks.pop_settled(), None);
/// assert!(chunks.settle(&10).is_some());
/// assert_eq!(chunks.pop_settled(), Some((10, "a chunk")));
/// assert_eq!(chunks.pop_settled(), Some((11, "a chunk")));
/// assert_eq!(chunks.first(), Some(&12));
/// ```
#[derive(Debug, Clone)]
pub struct SettledPrefix<K, T> {
    items: BTreeMap<K, Item<T>>,
}

#[derive(Debug, Clone)]
struct Item<T> {
    content: T,
    is_settled: bool,
}

impl<K, T> Default for SettledPrefix<K, T> {
    fn default() -> Self {
        let items = BTreeMap::new();
        Self { items }
    }
}

impl<K: Ord, T> SettledPrefix<K, T> {
    /// Adds an item that is not settled, or replaces the one with this key.
    pub fn insert(&mut self, key: K, content: T) {
        let item = Item {
            content,
            is_settled: false,
        };
        self.items.insert(key, item);
    }

    /// Settles an item and returns it. Returns nothing if there is none with this key.
    pub fn settle(&mut self, key: &K) -> Option<&mut T> {
        let item = self.items.get_mut(key)?;
        item.is_settled = true;
        Some(&mut item.content)
    }

    /// Removes the first item and returns it, if it is settled.
    pub fn pop_settled(&mut self) -> Option<(K, T)> {
        let first = self.items.first_entry()?;
        let (key, item) = first.get().is_settled.then(|| first.remove_entry())?;
        Some((key, item.content))
    }

    /// Returns an item that was not removed yet.
    pub fn get_mut(&mut self, key: &K) -> Option<&mut T> {
        self.items.get_mut(key).map(|item| &mut item.content)
    }

    /// Returns all items in their order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.items.values().map(|item| &item.content)
    }

    /// Returns the items that are not settled, in their order.
    pub fn unsettled_mut(&mut self) -> impl Iterator<Item = &mut T> {
        let unsettled = self.items.values_mut().filter(|item| !item.is_settled);
        unsettled.map(|item| &mut item.content)
    }

    /// Returns the key of the first item. After [`pop_settled`](Self::pop_settled) has returned
    /// nothing, this item is not settled.
    pub fn first(&self) -> Option<&K> {
        self.items.first_key_value().map(|(key, _)| key)
    }

    /// Returns the last item with its key.
    pub fn last_mut(&mut self) -> Option<(&K, &mut T)> {
        let (key, item) = self.items.iter_mut().next_back()?;
        Some((key, &mut item.content))
    }

    /// Whether an item with this key was inserted and not removed.
    pub fn contains(&self, key: &K) -> bool {
        self.items.contains_key(key)
    }

    /// Returns the number of items, with the settled ones behind the first one.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether everything was settled and removed.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Forgets all items.
    pub fn clear(&mut self) {
        self.items.clear();
    }
}

#[cfg(test)]
mod tests;
