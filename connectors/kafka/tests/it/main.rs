//! The connector against the contract, faults of a cluster, and rebalances.

#![cfg(test)]

mod brokers;
mod browse;
mod contract;
mod failure;
mod group;
mod network;
mod real;
mod requests;
mod sasl;
mod stats;
mod support;
mod tls;
