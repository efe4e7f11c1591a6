//! Folders of segments: the contract, damage, limits, positions, crashes.

mod consumed;
mod consumer;
mod contract;
mod crash;
mod damage;
mod follow;
mod limits;
mod numbers;
mod schedules;
mod support;
