//! The sampler of threads: makes records of their published stacks.

use std::io;
use std::sync::atomic::Ordering;
use std::time::Instant;

use baler_common::record::sampling::SEPARATOR;
use baler_common::record::{Interned, Record};

use super::stack::SeenStack;
use super::threads::stacks;
use crate::samplers::{Context, Sample, Sensor};

/// A [`ThreadSampleRecord`](baler_common::record::sampling::ThreadSampleRecord) with interned
/// strings, which are not copied for each record.
#[derive(Debug, Record)]
#[record(name = "baler.ThreadSampleRecord", rename_all = "camelCase")]
pub(crate) struct ThreadSample {
    #[record(unix_nanos)]
    timestamp: i64,
    hostname: Interned,
    thread: u32,
    round: u64,
    interval: u64,
    operation_signature: Interned,
    callers: String,
    depth: u32,
}

/// Reads the stacks of all threads.
#[derive(Debug, Default)]
pub(crate) struct Threads {
    /// The time of the last sample.
    last: Option<Instant>,
    /// The stack of one thread and the names of its callers, kept for their memory.
    seen: SeenStack,
    callers: String,
}

impl Sensor for Threads {
    fn sample(&mut self, context: &Context<'_>, out: &mut Vec<Sample>) -> io::Result<()> {
        let Some(last) = self.last.replace(context.at) else {
            // The next sample has an interval.
            return Ok(());
        };
        let interval = context.at.duration_since(last).as_nanos();
        let interval = u64::try_from(interval).map_err(io::Error::other)?;
        // It is known already.
        let hostname = Interned::leaked(context.hostname);
        let (choice, stacks) = stacks();
        for stack in stacks {
            let (torn, is_whole) = stack.look(choice, &mut self.seen);
            context.torn.fetch_add(torn, Ordering::Relaxed);
            let seen = &self.seen;
            let Some((operation, callers)) = seen.operations.split_last().filter(|_| is_whole)
            else {
                continue;
            };
            self.callers.clear();
            for (index, caller) in callers.iter().enumerate() {
                if index > 0 {
                    self.callers.push(SEPARATOR);
                }
                let caller = Interned::from_number(*caller);
                self.callers.push_str(caller.as_str());
            }
            out.push(Sample::Thread(ThreadSample {
                timestamp: context.unix_ns,
                hostname,
                thread: seen.thread,
                round: context.round,
                interval,
                operation_signature: Interned::from_number(*operation),
                callers: self.callers.clone(),
                depth: seen.depth,
            }));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use baler_common::record::sampling::ThreadSampleRecord;

    use super::*;

    #[test]
    fn the_type_of_samples_is_the_public_one() {
        assert_eq!(ThreadSample::schema(), ThreadSampleRecord::schema());
    }
}
