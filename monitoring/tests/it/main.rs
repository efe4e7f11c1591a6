//! What an application sees: the controller, its queues and its collector over writers that are
//! slow, stuck or broken; and probes.

#![cfg(test)]

mod closing;
mod conservation;
mod failure;
mod lifecycle;
mod limits;
#[cfg(all(feature = "enable", feature = "macros"))]
mod probe;
mod support;
