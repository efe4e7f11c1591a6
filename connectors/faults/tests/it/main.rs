//! The faults do what they say, and leave nothing behind.

#![cfg(test)]

mod proxy;
mod rabbitmq;
