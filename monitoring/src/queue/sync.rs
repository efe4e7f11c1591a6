//! What the queues and the cells of aggregations take from the standard library, or from loom where
//! their models check them.

#[cfg(not(all(test, baler_loom)))]
pub(crate) use std::sync::atomic::AtomicU32;
#[cfg(not(all(test, baler_loom)))]
pub(crate) use std::sync::{
    Condvar, Mutex, MutexGuard,
    atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence},
};

#[cfg(all(test, baler_loom))]
pub(crate) use loom::sync::atomic::AtomicU32;
#[cfg(all(test, baler_loom))]
pub(crate) use loom::sync::{
    Condvar, Mutex, MutexGuard,
    atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence},
};
