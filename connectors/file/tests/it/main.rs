//! The file connector against real folders: the contract, damage, limits, positions, crashes.
#![cfg(test)]

mod consumed;
mod consumer;
mod contract;
mod crash;
mod damage;
mod follow;
mod limits;
mod numbers;
mod schedules;
#[cfg(feature = "spool")]
mod spool;
mod support;
