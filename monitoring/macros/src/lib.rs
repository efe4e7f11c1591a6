//! The #[probe] attribute of Baler.
