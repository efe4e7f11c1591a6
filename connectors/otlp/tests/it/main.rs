//! Readers and writers of OTLP keep the contract of connectors, and the rules of OTLP: requests are
//! answered after their chunks are acknowledged, refused records are counted, refused requests are
//! sent again, divided or given up.
#![cfg(test)]

mod connections;
mod contract;
mod corpus;
mod kieker;
mod reader;
mod support;
mod tracing;
mod writer;
