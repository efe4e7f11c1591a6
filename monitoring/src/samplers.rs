//! Samplers: records about the load of the machine and the process, and of running threads.
//!
//! ```text
//! /proc, /sys -> (cpu | machine | network | disk | process) -> records -> queue
//!                  └ thread `baler-samplers`: an absolute schedule each ┘
//! ```
//!
//! The records are Kieker's, with its names and fields (`kieker.common.record.system`), and can be
//! switched by the patterns of adaptive monitoring under Kieker's signatures.
//! The samplers of threads are in `sampling`.
//! Each sensor takes the kernel's text and the time as arguments.

mod cpu;
mod disk;
mod machine;
mod network;
mod proc;
mod process;
mod sampler;
mod sensor;
mod thread;
#[cfg(target_os = "linux")]
pub mod usage;

pub use sampler::Sampler;
#[cfg(feature = "sampling")]
pub(crate) use sampler::THREADS;
pub use sensor::ProcessRecord;
#[cfg(feature = "sampling")]
pub(crate) use sensor::{Context, Sample, Sensor};
pub use thread::SamplerStats;
pub(crate) use thread::{Samplers, Task};
