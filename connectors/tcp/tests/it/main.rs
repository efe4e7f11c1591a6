//! The connector against the contract, a misbehaving network, hostile peers, and its fuzz corpus.

#![cfg(test)]

mod contract;
mod corpus;
mod failure;
mod hostile_receiver;
mod hostile_sender;
mod load;
mod security;
mod support;
#[cfg(feature = "tls")]
mod tls;
