//! Running threads, seen from outside: each thread publishes the stack of its sampled operations, and
//! a sampler reads it.
//!
//! ```text
//! probe -> [stack of this thread] <- sampler of threads -> records -> queue
//! ```
//!
//! Hybrid monitoring reads them as well, and switches probes by what it sees.
//!
//! The sampler neither stops a thread nor unwinds its stack, so it cannot crash a program. It sees
//! only operations with a probe.

mod hybrid;
mod sensor;
mod stack;
mod threads;

pub use hybrid::Hybrid;
pub(crate) use hybrid::{HybridSensor, thread_cpu_ns};
pub(crate) use sensor::{ThreadSample, Threads};
#[cfg(unix)]
pub(crate) use threads::{StacksHold, hold_stacks};
pub(crate) use threads::{choose_anew, enter, leave};
