//! The connector against the contract, a misbehaving network, hostile peers, and its fuzz corpus.

#![cfg(test)]

mod contract;
mod support;
