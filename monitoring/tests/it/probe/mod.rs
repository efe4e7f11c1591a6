//! Probes record each call once, at the right place of its trace, and only while recording is on.

mod adaptive;
mod aggregated;
mod asynchronous;
mod blocks;
mod cancellation;
mod durations;
mod functions;
mod processes;
pub(crate) mod recording;
mod signatures;
mod switching;
mod traces;
