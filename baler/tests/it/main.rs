//! The crate as an application sees it: records go out and come back as values, whatever fails.

#![cfg(test)]

#[cfg(feature = "kieker")]
mod adaptive;
#[cfg(all(feature = "amqp", feature = "kafka"))]
mod brokers;
mod config;
mod facade;
mod killed;
mod settling;
#[cfg(feature = "stream")]
mod stream;
mod support;
mod typed;
