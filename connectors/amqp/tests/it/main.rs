//! The connector against real RabbitMQ nodes, which the tests start.

mod contract;
mod fault;
mod reader;
mod support;
mod writer;
