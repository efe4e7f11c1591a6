//! One medium for the whole time.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use baler_rig::usage::Footprint;

use super::Args;
use super::ends::{Order, Read, Sent, Task};
use super::medium::{Medium, Running};
use crate::Failure;

/// Both ends at one moment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sample {
    /// Since the start.
    pub(super) seconds: f64,
    pub(super) writer: Footprint,
    pub(super) reader: Footprint,
}

/// The observations of a medium.
#[derive(Debug)]
pub(super) struct Endured {
    pub(super) samples: Vec<Sample>,
    pub(super) restarts: u64,
    pub(super) sent: Sent,
    pub(super) read: Read,
}

/// How often both ends are sampled.
const SAMPLE: Duration = Duration::from_secs(1);

/// How long an end may take.
const PATIENCE: Duration = Duration::from_secs(200);

/// Soaks a medium.
pub(super) fn endure(medium: Medium, args: &Args) -> Result<Endured, Failure> {
    let folder = args.folder.clone().unwrap_or_else(std::env::temp_dir);
    let running = Running::start(medium, &folder)?;
    let per_second = args.rate.get();
    let mut writer = Task::Send {
        uri: running.writer_uri(),
        per_second,
        // The last stretch of the warm-up is steady already.
        bursts: args.restart_every.get() * u64::from(args.warm_up.saturating_sub(1)),
    }
    .start()?;
    running.wait_for_reader()?;
    let mut reader = Task::Read {
        uri: running.reader_uri(),
        capacity: u64::from(per_second).saturating_mul(args.seconds.get() + 60),
    }
    .start()?;
    if medium == Medium::Amqp {
        // A node that is killed soon after a declaration may forget it.
        thread::park_timeout(args.restart_every() / 4);
        running.sync()?;
    }
    let start = Instant::now();
    let (restart, restarts) = channel::<u64>();
    let (report, reports) = channel::<Result<bool, Failure>>();
    let running = &running;
    let endured = thread::scope(|scope| {
        // In a thread of its own, since a restart takes longer than a sample.
        scope.spawn(move || {
            for number in restarts {
                report.send(running.restart(number)).ok();
            }
        });
        let mut samples = Vec::new();
        let mut count = 0;
        loop {
            let now = start.elapsed();
            if now >= args.duration() {
                break;
            }
            samples.push(Sample {
                seconds: now.as_secs_f64(),
                writer: Footprint::of(writer.pid())?,
                reader: Footprint::of(reader.pid())?,
            });
            if now >= args.restart_every() * u32::try_from(count + 1).unwrap_or(u32::MAX) {
                count += 1;
                restart.send(count).ok();
            }
            match reports.recv_timeout(SAMPLE.saturating_sub(start.elapsed() - now)) {
                Ok(has_broker) => match has_broker? {
                    true => reader.send(&Order::Returned)?,
                    false => reader.send(&Order::Reopen)?,
                },
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Failure::new("the thread for restarts ended"));
                }
            }
        }
        drop(restart);
        writer.send(&Order::End(0))?;
        let sent: Sent = writer.answer(PATIENCE, &mut || true)?;
        reader.send(&Order::End(sent.emitted))?;
        let read: Read = reader.answer(PATIENCE, &mut || true)?;
        Ok(Endured {
            samples,
            restarts: count,
            sent,
            read,
        })
    })?;
    writer.end(PATIENCE)?;
    reader.end(PATIENCE)?;
    Ok(endured)
}
