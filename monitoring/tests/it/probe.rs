//! Probes record each call once, at the right place of its trace, and only while recording is on.

mod adaptive;
mod aggregated;
mod asynchronous;
mod blocks;
mod busy;
mod cancellation;
mod durations;
mod events;
mod functions;
mod guards;
mod processes;
pub(crate) mod recording;
#[cfg(unix)]
mod signals;
mod signatures;
mod switching;
mod traces;
