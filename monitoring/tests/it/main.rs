//! The application's view: the controller, its queues and its collector over writers that are slow,
//! stuck or broken; probes; and the examples.

#![cfg(test)]
#![cfg(feature = "enable")]

mod auto;
mod batches;
mod closing;
mod conservation;
#[cfg(feature = "macros")]
mod examples;
mod failure;
#[cfg(all(feature = "macros", feature = "sampling", target_os = "linux"))]
mod hybrid;
mod lanes;
mod lifecycle;
mod limits;
#[cfg(feature = "macros")]
mod probe;
#[cfg(all(feature = "samplers", target_os = "linux"))]
mod samplers;
#[cfg(all(feature = "macros", feature = "sampling"))]
mod sampling;
mod support;
