//! The crate from outside, as applications and consumers use it.

mod derive;
