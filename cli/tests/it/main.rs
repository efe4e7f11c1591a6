//! Tests of the program from outside, and of rules for the whole workspace.

#![cfg(test)]

mod accounts;
mod analyze;
mod autoscale;
#[cfg(all(feature = "amqp", feature = "faults", feature = "kafka"))]
mod brokers;
mod circles;
mod clients;
mod config;
mod dictionaries;
mod documents;
mod edges;
mod filters;
mod habits;
mod hostile;
mod image;
#[cfg(feature = "instrument")]
mod instrument;
mod irl;
mod irl_generate;
mod json_lines;
#[cfg(feature = "kafka")]
mod json_logs;
mod json_text;
#[cfg(feature = "kafka")]
mod kafka;
mod kieker;
#[cfg(feature = "faults")]
mod killed;
mod mutated;
mod observability;
#[cfg(all(feature = "kafka", feature = "otlp"))]
mod otlp;
#[cfg(feature = "otlp")]
mod otlp_faults;
mod outputs;
mod pages;
#[cfg(feature = "parquet")]
mod parquet;
#[cfg(all(feature = "amqp", feature = "kafka"))]
mod patience;
mod poison;
#[cfg(feature = "kieker")]
mod probes;
mod real_log;
mod refusals;
mod relay;
mod replay;
mod signals;
mod sigterm;
mod spans;
mod spool;
#[cfg(feature = "kieker")]
mod summaries;
mod support;
mod survival;
mod sweep;
mod tap;
mod terminal;
mod validate;
#[cfg(feature = "faults")]
mod verify;
mod wording;
