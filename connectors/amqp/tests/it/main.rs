//! The connector against real RabbitMQ nodes, which the tests start.

#![cfg(test)]

mod cluster;
mod contract;
mod fault;
mod kieker_plain;
mod network;
mod operator;
mod reader;
mod stream;
mod support;
mod tap;
mod tls;
mod traffic;
mod writer;
