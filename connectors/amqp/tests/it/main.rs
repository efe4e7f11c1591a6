//! The connector against real RabbitMQ nodes, which the tests start.

#![cfg(test)]

mod contract;
mod fault;
mod reader;
mod support;
mod tap;
mod writer;
