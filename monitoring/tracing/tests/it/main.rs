//! Spans and events of an application as records: parents, times, attributes, and one trace with
//! probes. In all tests the account adds up.

#![cfg(test)]

mod attributes;
mod events;
mod parents;
mod probes;
mod propagation;
mod service;
mod support;
mod times;
