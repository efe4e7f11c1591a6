//! Strings that live as long as the program. Rows contain them as numbers.
//!
//! A call site's strings are interned once. Then its rows contain four bytes instead of the text,
//! and the application's thread computes no hash. Strings of dynamic values are not interned here:
//! they would never be freed.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock, RwLockWriteGuard};

/// In a row, marks a string's length as the number of an interned string.
pub(super) const INTERNED: u32 = 0x8000_0000;

/// A handle to an interned string; equal strings have equal handles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Interned(u32);

/// The last handle: rows keep the top bit of four bytes for themselves.
const LAST: u32 = INTERNED - 1;

#[derive(Debug, Default)]
struct Table {
    strings: Vec<&'static str>,
    numbers: HashMap<&'static str, u32>,
}

static TABLE: RwLock<Option<Table>> = RwLock::new(None);

/// While it lives, no other thread can intern; see [`Interned::hold`].
#[doc(hidden)]
#[derive(Debug)]
pub struct InternerHold(#[expect(dead_code, reason = "held until it is dropped")] Guard);

type Guard = RwLockWriteGuard<'static, Option<Table>>;

impl Interned {
    /// Interns a string.
    ///
    /// Takes a lock and hashes the string. Call it once a call site and keep the handle.
    pub fn new(string: &'static str) -> Self {
        let mut guard = TABLE.write().unwrap_or_else(PoisonError::into_inner);
        let table = guard.get_or_insert_with(Table::default);
        if let Some(&number) = table.numbers.get(string) {
            return Self(number);
        }
        // Two billion distinct statics do not fit into an executable. If they ever do, a string is
        // wrong, but the monitored application does not crash.
        let number = u32::try_from(table.strings.len()).unwrap_or(LAST).min(LAST);
        table.strings.push(string);
        table.numbers.insert(string, number);
        Self(number)
    }

    /// Interns a string that was made at run time, once for the rest of the program.
    ///
    /// Its memory is never freed. Use it only for a few strings, such as the machine's name and the
    /// signatures of call sites.
    pub fn leaked(string: &str) -> Self {
        let known = TABLE.read().unwrap_or_else(PoisonError::into_inner);
        let number = known.as_ref().and_then(|table| table.numbers.get(string));
        if let Some(&number) = number {
            return Self(number);
        }
        drop(known);
        // Two threads may leak one string each. The second one then gets the handle of the first.
        Self::new(String::from(string).leak())
    }

    /// Keeps all other threads from interning. For a thread that forks: otherwise its child may
    /// find the lock taken for ever.
    #[doc(hidden)]
    pub fn hold() -> InternerHold {
        InternerHold(TABLE.write().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the string of the handle.
    pub fn as_str(self) -> &'static str {
        self.text().unwrap_or("")
    }

    /// Returns the string of the handle, if its number exists.
    pub(crate) fn text(self) -> Option<&'static str> {
        let guard = TABLE.read().unwrap_or_else(PoisonError::into_inner);
        let index = usize::try_from(self.0).ok()?;
        guard.as_ref()?.strings.get(index).copied()
    }

    /// Returns the handle's number, dense from 0 in order of interning.
    #[doc(hidden)]
    pub const fn number(self) -> u32 {
        self.0
    }

    /// Returns the handle with this number; it need not exist.
    #[doc(hidden)]
    pub const fn from_number(number: u32) -> Self {
        Self(number)
    }
}

impl From<&'static str> for Interned {
    fn from(string: &'static str) -> Self {
        Self::new(string)
    }
}

#[cfg(test)]
mod tests;
