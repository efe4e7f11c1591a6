//! The sampler of threads: makes records of their published stacks.

use std::io;
use std::sync::atomic::Ordering;
use std::time::Instant;

use baler_common::record::Interned;
use baler_common::record::sampling::{SEPARATOR, ThreadSampleRecord};

use super::stack::SeenStack;
use super::threads::stacks;
use crate::samplers::{Context, Sample, Sensor};

/// Reads the stacks of all threads.
#[derive(Debug, Default)]
pub(crate) struct Threads {
    /// The time of the last sample.
    last: Option<Instant>,
    /// The stack of one thread, kept for its memory.
    seen: SeenStack,
}

impl Sensor for Threads {
    fn sample(&mut self, context: &Context<'_>, out: &mut Vec<Sample>) -> io::Result<()> {
        let Some(last) = self.last.replace(context.at) else {
            // The next sample has an interval.
            return Ok(());
        };
        let interval = context.at.saturating_duration_since(last).as_nanos();
        let interval = u64::try_from(interval).map_err(io::Error::other)?;
        let (choice, stacks) = stacks();
        for stack in stacks {
            let (torn, is_whole) = stack.look(choice, &mut self.seen);
            context.torn.fetch_add(torn, Ordering::Relaxed);
            let seen = &self.seen;
            let Some((operation, callers)) = seen.operations.split_last().filter(|_| is_whole)
            else {
                continue;
            };
            out.push(Sample::Thread(ThreadSampleRecord {
                timestamp: context.unix_ns,
                hostname: context.hostname.to_owned(),
                thread: seen.thread,
                round: context.round,
                interval,
                operation_signature: name(*operation).to_owned(),
                callers: join(callers),
                depth: seen.depth,
            }));
        }
        Ok(())
    }
}

fn name(operation: u32) -> &'static str {
    Interned::from_number(operation).as_str()
}

fn join(callers: &[u32]) -> String {
    let mut joined = String::new();
    for (index, caller) in callers.iter().enumerate() {
        if index > 0 {
            joined.push(SEPARATOR);
        }
        joined.push_str(name(*caller));
    }
    joined
}
