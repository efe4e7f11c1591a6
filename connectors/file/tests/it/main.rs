//! The file connector against real folders: the contract, damage, limits, crashes.
#![cfg(test)]

mod contract;
