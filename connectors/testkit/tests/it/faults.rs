//! The faults work, and leave nothing behind.

mod process_group;
mod proxy;
mod rabbitmq;
