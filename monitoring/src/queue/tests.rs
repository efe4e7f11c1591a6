//! Tests of the queues, without a collector: their rows, and under loom models of their threads.

#[cfg(baler_loom)]
mod models;
#[cfg(not(baler_loom))]
mod rows;
