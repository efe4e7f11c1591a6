//! `baler verify`: numbered records through an endpoint, faults on the way, and an oracle that knows
//! what must arrive.
//!
//! ```text
//! run -> fleet -> [producer process] ~~ stand: endpoint, with faults ~~ [consumer process]
//!                        |  offered, acknowledged            processed  |
//!                        +-----------------> oracle <-------------------+
//! ```

mod consumer;
mod faults;
mod fleet;
mod messages;
mod oracle;
mod producer;
mod records;
mod report;
mod run;
mod stand;
mod writer;

pub(super) use consumer::run as consume;
pub(super) use producer::run as produce;
pub(super) use run::run;
