//! Tests of the queues.
