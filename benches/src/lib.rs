//! Benchmarks of Baler beside its peers.
