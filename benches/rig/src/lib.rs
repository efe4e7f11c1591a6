//! What Baler's measurements share: the load they put on, so far.
//!
//! - [`workload`]: synthetic calls of operations and their records, the same for every rival and every
//!   machine.

mod random;
pub mod workload;
