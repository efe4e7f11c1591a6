//! Checks of settings against each other, and against this machine.

use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use baler_common::transport::Capability;

use super::finding::Findings;
use crate::args::{OverflowChoice, SpoolArgs, ValidateArgs};
use crate::output;
use crate::shutdown::Shutdown;

/// The defaults of the library, where no flag is given: `chunk_bytes`, `max_chunk_bytes`, wait time.
const CHUNK_BYTES: usize = 256 << 10;
const MAX_CHUNK_BYTES: usize = 960 << 10;
const WAIT_TIME: Duration = Duration::from_millis(500);

/// The default of `--spool-bytes`.
const SPOOL_BYTES: u64 = 1 << 30;

fn bytes(value: usize) -> String {
    output::bytes(value as u64)
}

/// Checks the order of the three sizes: a chunk closes at its threshold, is split at its cap, and
/// the medium takes no larger chunk. `origin` says who named the medium's limit.
pub(super) fn check_sizes(
    subject: &str,
    args: &ValidateArgs,
    capability: &Capability,
    origin: &str,
    findings: &mut Findings,
) {
    let shipping = &args.shipping;
    let threshold = shipping.chunk_bytes.map_or(CHUNK_BYTES, Into::into);
    let cap = shipping.max_chunk_bytes.map_or(MAX_CHUNK_BYTES, Into::into);
    let limit = capability.max_chunk_bytes.get();
    let [size, most, taken, kept] = [threshold, cap, limit, cap.min(limit)].map(bytes);
    let medium = capability.medium;
    if threshold > cap {
        let message = format!("chunk_bytes ({size}) is above max_chunk_bytes ({most})");
        let fix = "a chunk closes before it is split: lower chunk_bytes or raise max_chunk_bytes";
        findings.failed(subject, message, fix);
    } else if threshold > limit {
        let message = format!(
            "chunk_bytes ({size}) is above the largest chunk of {medium}, {taken} ({origin}): every \
             full chunk is split"
        );
        let fix = "lower chunk_bytes, or raise the medium's limit";
        findings.warn(subject, message, fix);
    } else if shipping.max_chunk_bytes.is_some() && cap > limit {
        let message = format!(
            "max_chunk_bytes ({most}) is above the largest chunk of {medium}, {taken} ({origin}), \
             which counts"
        );
        let fix = "lower max_chunk_bytes, or raise the medium's limit";
        findings.warn(subject, message, fix);
    } else {
        let message = format!(
            "sizes are in order: a chunk closes at {size} and is split at {kept}; largest chunk of \
             {medium}: {taken} ({origin})"
        );
        findings.ok(subject, message);
    }
    if let Some(queue) = shipping.queue_bytes {
        let (queue, window) = (queue.get(), capability.window_bytes.get());
        let [all, queues, in_flight] = [queue.saturating_add(window), queue, window].map(bytes);
        let message =
            format!("up to {all} in memory: {queues} of queues, {in_flight} of chunks in flight");
        findings.ok(subject, message);
        if queue < threshold {
            let message = format!("queue_bytes ({queues}) is below chunk_bytes ({size})");
            let fix = "a queue that holds less than a chunk is often full: raise queue_bytes";
            findings.warn(subject, message, fix);
        }
    }
}

/// Checks waiting times against deadlines.
pub(super) fn check_times(args: &ValidateArgs, shutdown: &Shutdown, findings: &mut Findings) {
    let auto = match args.shipping.auto_latency() {
        Ok(auto) => auto,
        Err(error) => {
            let fix = "set chunk_records = \"auto\", or wait_time in place of max_latency";
            findings.failed("max_latency", error, fix);
            None
        }
    };
    let shipping = &args.shipping;
    if let Some(bound) = auto {
        let within = shipping.wait_time.map_or(String::new(), |time| {
            format!(", waits for its chunk no longer than {time:?}")
        });
        let message = format!(
            "auto: chunks grow with the rate, as far as a record is confirmed within {bound:?} \
             (max_latency){within} and a larger one saves anything"
        );
        findings.ok("chunk_records", message);
    }
    let (waits, wait) = match (shipping.wait_time, auto) {
        (Some(time), _) => ("wait_time", time),
        (None, Some(bound)) => ("max_latency", bound),
        (None, None) => ("wait_time", WAIT_TIME),
    };
    let (deadline, give_up) = (shutdown.timeout(), shipping.give_up);
    if wait >= deadline {
        let message = format!("{wait:?} is not below shutdown_timeout ({deadline:?})");
        let fix = format!("records that still wait have no time left at a shutdown: lower {waits}");
        findings.warn(waits, message, &fix);
    }
    if give_up < wait {
        let message = format!("{give_up:?} is below {waits} ({wait:?})");
        let fix = "a medium is given up before the first chunk is sent: raise give_up";
        findings.warn("give_up", message, fix);
    }
    let block = shipping.block_timeout;
    if shipping.overflow == OverflowChoice::BlockWithTimeout && block >= give_up {
        let message = format!("{block:?} is not below give_up ({give_up:?})");
        let fix = "the medium is given up before a record is dropped: lower block_timeout";
        findings.warn("block_timeout", message, fix);
    }
}

/// Checks whether the spool's folder can be written and has room.
pub(super) fn check_spool(args: &SpoolArgs, findings: &mut Findings) {
    let Some(folder) = &args.spool else {
        return;
    };
    let mut ancestors = folder.ancestors();
    let nearest = ancestors.find(|it| it.exists());
    let nearest = nearest.unwrap_or_else(|| Path::new("."));
    let shown = nearest.display();
    if !nearest.is_dir() {
        let fix = "name a folder, or a path that is free";
        findings.failed("spool", format!("{shown} is no folder"), fix);
        return;
    }
    let probe = nearest.join(format!(".baler-validate-{}", std::process::id()));
    let wrote = std::fs::File::create_new(&probe)
        .and_then(|mut file| file.write_all(b"probe"))
        .and_then(|()| std::fs::remove_file(&probe));
    if let Err(error) = wrote {
        let message = format!("{shown} cannot be written: {error}");
        let fix = "give this user the right to write there, or name another folder";
        findings.failed("spool", message, fix);
        return;
    }
    let wanted = args.spool_bytes;
    let wanted = wanted.map_or(SPOOL_BYTES, |bytes| bytes.get() as u64);
    let room = output::bytes(wanted);
    let space = rustix::fs::statvfs(nearest);
    match space.map(|space| space.f_bavail.saturating_mul(space.f_frsize)) {
        Ok(free) if free < wanted => {
            let free = output::bytes(free);
            let message = format!("{shown} has {free} free, below spool_bytes ({room})");
            let fix = "lower spool_bytes, or make room: a full disk stops the senders";
            findings.warn("spool", message, fix);
        }
        Ok(_) => {
            let made = match folder.exists() {
                true => "",
                false => "; it is made when it is needed",
            };
            let folder = folder.display();
            let message = format!("{folder} can be written and has room for {room}{made}");
            findings.ok("spool", message);
        }
        Err(error) => {
            let message = format!("how much is free at {shown} is unknown: {error}");
            findings.warn("spool", message, "see to it yourself");
        }
    }
}
