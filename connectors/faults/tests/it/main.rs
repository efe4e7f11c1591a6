//! The faults do what they say, and leave nothing behind.

#![cfg(test)]

mod leash;
mod proxy;
mod rabbitmq;
