//! The versions of the protocol.

use std::fmt;

/// The versions of the protocol that this crate speaks.
pub(crate) const VERSIONS: VersionRange = VersionRange { low: 1, high: 1 };

/// The versions of the protocol that a side speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VersionRange {
    /// The lowest version.
    pub low: u16,
    /// The highest version.
    pub high: u16,
}

impl VersionRange {
    /// Returns the highest version that both sides speak.
    pub(crate) fn common(self, other: Self) -> Option<u16> {
        let high = self.high.min(other.high);
        (high >= self.low.max(other.low)).then_some(high)
    }
}

impl fmt::Display for VersionRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.low == self.high {
            write!(f, "version {}", self.low)
        } else {
            write!(f, "versions {} to {}", self.low, self.high)
        }
    }
}
