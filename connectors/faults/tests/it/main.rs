//! The faults work, and leave nothing behind.

#![cfg(test)]

mod process_group;
mod proxy;
mod rabbitmq;
