//! The controller, its queues and its collector, over writers that are slow, stuck or broken.

#![cfg(test)]

mod closing;
mod conservation;
mod failure;
mod lifecycle;
mod limits;
mod support;
