//! The spool over the medium in memory: contract, outages, restarts, disks that fail.

mod away;
mod contract;
mod disk;
mod fork;
mod property;
mod support;
