//! The consuming side across its seams: readers in, settled chunks out.
#![cfg(test)]

#[cfg(feature = "arrow")]
mod arrow;
mod filters;
mod json_lines;
mod saved_traces;
mod schedules;
mod sinks;
mod source;
mod spans;
mod support;
mod traces;
mod workers;
