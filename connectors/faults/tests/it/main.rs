//! The faults do what they say, and leave nothing behind.

#![cfg(test)]

mod process_group;
mod proxy;
mod rabbitmq;
