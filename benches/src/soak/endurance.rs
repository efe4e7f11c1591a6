//! One medium for the whole time.

use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use baler_rig::child::Child;
use baler_rig::footprint::Footprint;

use super::args::Args;
use super::ends::{Order, Read, Reading, Sending, Sent};
use baler_rig::lines::understand;

use crate::failure::Failure;
use crate::medium::{Medium, Running};
use crate::role::Role;

/// Both ends at one moment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sample {
    /// Since the start.
    pub(super) seconds: f64,
    pub(super) writer: Footprint,
    pub(super) reader: Footprint,
}

/// What was seen of a medium.
#[derive(Debug)]
pub(super) struct Endured {
    pub(super) samples: Vec<Sample>,
    pub(super) restarts: u64,
    pub(super) sent: Sent,
    pub(super) read: Read,
}

/// How often both ends are looked at.
const SAMPLE: Duration = Duration::from_secs(1);

/// How long the mock cluster's broker is away; RabbitMQ takes its own time.
const MOCK_DOWN: Duration = Duration::from_secs(3);

/// How long an end may take.
const PATIENCE: Duration = Duration::from_secs(200);

/// Soaks a medium.
pub(super) fn endure(medium: Medium, args: &Args, folder: &Path) -> Result<Endured, Failure> {
    let mut running = Running::start(medium, folder)?;
    let per_second = args.rate.get();
    let capacity = u64::from(per_second).saturating_mul(args.seconds.get() + 60);
    let reading = Role::Read(Reading {
        uri: running.reader_uri(),
        capacity,
    });
    let sending = Role::Send(Sending {
        uri: running.writer_uri(),
        per_second,
        seed: args.seed,
        // The last stretch of the warm-up is steady already.
        bursts: args.restart_every.get() * u64::from(args.warm_up.saturating_sub(1)),
    });
    // A folder must be there before it is read.
    let (mut writer, mut reader) = if medium == Medium::File {
        let writer = sending.start()?;
        wait_for_segment(folder_of(&running))?;
        (writer, reading.start()?)
    } else {
        let reader = reading.start()?;
        (sending.start()?, reader)
    };
    if medium == Medium::Amqp {
        // A node that is killed soon after a declaration may forget it.
        thread::park_timeout(args.restart_every() / 4);
        running.sync()?;
    }
    let start = Instant::now();
    let (tell, restarts) = channel::<u64>();
    let (told, returned) = channel::<Result<(), Failure>>();
    let restarts_reader = running.restarts_reader();
    let result = thread::scope(|scope| {
        // Beside the samples, since it takes its time.
        scope.spawn(move || {
            for number in restarts {
                told.send(restart(&mut running, number)).ok();
            }
            running
        });
        let mut samples = Vec::new();
        let mut count = 0;
        loop {
            let now = start.elapsed();
            if now >= args.duration() {
                break;
            }
            let looked = Failure::cannot("look at a child process");
            samples.push(Sample {
                seconds: now.as_secs_f64(),
                writer: Footprint::of(writer.pid()).map_err(&looked)?,
                reader: Footprint::of(reader.pid()).map_err(&looked)?,
            });
            if now >= args.restart_every() * u32::try_from(count + 1).unwrap_or(u32::MAX) {
                count += 1;
                if restarts_reader {
                    order(&mut reader, Order::Reopen)?;
                } else {
                    tell.send(count).ok();
                }
            }
            match returned.recv_timeout(SAMPLE.saturating_sub(start.elapsed() - now)) {
                Ok(back) => {
                    back?;
                    order(&mut reader, Order::Returned)?;
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Failure::new("the thread for restarts ended"));
                }
            }
        }
        order(&mut writer, Order::End(0))?;
        let sent: Sent = answer(&writer)?;
        order(&mut reader, Order::End(sent.emitted))?;
        let read: Read = answer(&reader)?;
        drop(tell);
        Ok(Endured {
            samples,
            restarts: count,
            sent,
            read,
        })
    })?;
    for child in [writer, reader] {
        child
            .end(PATIENCE)
            .map_err(Failure::cannot("end a child process"))?;
    }
    Ok(result)
}

/// Restarts the broker for the `number`th time, one in two times the hard way.
fn restart(running: &mut Running, number: u64) -> Result<(), Failure> {
    running.down(number % 2 == 1)?;
    if matches!(running, Running::Mock(_)) {
        thread::park_timeout(MOCK_DOWN);
    }
    running.up()
}

fn folder_of(running: &Running) -> &Path {
    match running {
        Running::File(folder) => folder.path(),
        _ => Path::new(""),
    }
}

fn wait_for_segment(folder: &Path) -> Result<(), Failure> {
    let by = Instant::now() + PATIENCE;
    while Instant::now() < by {
        let entries = folder.read_dir();
        if entries.is_ok_and(|mut entries| entries.next().is_some()) {
            return Ok(());
        }
        thread::park_timeout(Duration::from_millis(10));
    }
    Err(Failure::new("the writer makes no file"))
}

fn order(child: &mut Child, order: Order) -> Result<(), Failure> {
    let line = serde_json::to_string(&order).map_err(Failure::cannot("write JSON"))?;
    child
        .tell(&line)
        .map_err(Failure::cannot("order a child process"))
}

fn answer<T: for<'a> serde::Deserialize<'a>>(child: &Child) -> Result<T, Failure> {
    let line = child.line(Instant::now() + PATIENCE);
    understand(&line.map_err(Failure::cannot("hear of a child process"))?)
}
