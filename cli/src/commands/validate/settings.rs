//! Settings against each other, and against this machine.

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
    output::bytes(u64::try_from(value).unwrap_or(u64::MAX))
}

/// The three sizes in order: a chunk closes at its threshold, is split at its cap, and the medium
/// takes no larger one. `told` says whence the medium's limit is known.
pub(super) fn check_sizes(
    subject: &str,
    args: &ValidateArgs,
    capability: &Capability,
    told: &str,
    findings: &mut Findings,
) {
    let threshold = args.shipping.chunk_bytes.map_or(CHUNK_BYTES, Into::into);
    let cap = args
        .shipping
        .max_chunk_bytes
        .map_or(MAX_CHUNK_BYTES, Into::into);
    let limit = capability.max_chunk_bytes.get();
    let given = args.shipping.max_chunk_bytes.is_some();
    if threshold > cap {
        findings.failed(
            subject,
            format!(
                "chunk_bytes ({}) is above max_chunk_bytes ({})",
                bytes(threshold),
                bytes(cap)
            ),
            "a chunk closes before it is split: lower chunk_bytes or raise max_chunk_bytes",
        );
    } else if threshold > limit {
        findings.warn(
            subject,
            format!(
                "chunk_bytes ({}) is above the largest chunk that {} takes {told} ({}): every \
                 full chunk is split",
                bytes(threshold),
                capability.medium,
                bytes(limit)
            ),
            "lower chunk_bytes, or raise the medium's limit",
        );
    } else if given && cap > limit {
        findings.warn(
            subject,
            format!(
                "max_chunk_bytes ({}) is above the largest chunk that {} takes {told} ({}), which \
                 counts",
                bytes(cap),
                capability.medium,
                bytes(limit)
            ),
            "lower max_chunk_bytes, or raise the medium's limit",
        );
    } else {
        findings.ok(
            subject,
            format!(
                "sizes are in order: a chunk closes at {}, is split at {}, {} takes {} {told}",
                bytes(threshold),
                bytes(cap.min(limit)),
                capability.medium,
                bytes(limit)
            ),
        );
    }
    let window = capability.window_bytes.get();
    if let Some(queue) = args.shipping.queue_bytes {
        let all = queue.get().saturating_add(window);
        findings.ok(
            subject,
            format!(
                "up to {} in memory: {} of queues, {} of chunks in flight",
                bytes(all),
                bytes(queue.get()),
                bytes(window)
            ),
        );
        if queue.get() < threshold {
            findings.warn(
                subject,
                format!(
                    "queue_bytes ({}) is below chunk_bytes ({})",
                    bytes(queue.get()),
                    bytes(threshold)
                ),
                "a queue that holds less than a chunk is often full: raise queue_bytes",
            );
        }
    }
}

/// Waiting times against deadlines.
pub(super) fn check_times(args: &ValidateArgs, shutdown: &Shutdown, findings: &mut Findings) {
    let auto = match args.shipping.auto_latency() {
        Ok(auto) => auto,
        Err(error) => {
            let fix = "set chunk_records = \"auto\", or wait_time in place of max_latency";
            findings.failed("max_latency", error, fix);
            None
        }
    };
    if let Some(bound) = auto {
        let within = args.shipping.wait_time;
        let within = within.map_or(String::new(), |time| {
            format!(", waits for its chunk no longer than {time:?}")
        });
        findings.ok(
            "chunk_records",
            format!(
                "auto: chunks grow with the rate, as far as a record is confirmed within {bound:?} \
                 (max_latency){within} and a larger one saves anything"
            ),
        );
    }
    let (waits, wait) = match (args.shipping.wait_time, auto) {
        (Some(time), _) => ("wait_time", time),
        (None, Some(bound)) => ("max_latency", bound),
        (None, None) => ("wait_time", WAIT_TIME),
    };
    let deadline = shutdown.timeout();
    if wait >= deadline {
        findings.warn(
            waits,
            format!("{wait:?} is not below shutdown_timeout ({deadline:?})"),
            &format!("records that still wait have no time left at a shutdown: lower {waits}"),
        );
    }
    if args.shipping.give_up < wait {
        findings.warn(
            "give_up",
            format!("{:?} is below {waits} ({wait:?})", args.shipping.give_up),
            "a medium is given up before the first chunk is sent: raise give_up",
        );
    }
    let blocks = args.shipping.overflow == OverflowChoice::BlockWithTimeout;
    if blocks && args.shipping.block_timeout >= args.shipping.give_up {
        findings.warn(
            "block_timeout",
            format!(
                "{:?} is not below give_up ({:?})",
                args.shipping.block_timeout, args.shipping.give_up
            ),
            "the medium is given up before a record is dropped: lower block_timeout",
        );
    }
}

/// The spool's folder: whether it can be written, and has room.
pub(super) fn check_spool(args: &SpoolArgs, findings: &mut Findings) {
    let Some(folder) = &args.spool else {
        return;
    };
    let there = folder.exists();
    let nearest = folder
        .ancestors()
        .find(|it| it.exists())
        .unwrap_or_else(|| Path::new("."));
    if !nearest.is_dir() {
        let message = format!("{} is no folder", nearest.display());
        findings.failed("spool", message, "name a folder, or a path that is free");
        return;
    }
    let probe = nearest.join(format!(".baler-validate-{}", std::process::id()));
    let wrote = std::fs::File::create_new(&probe)
        .and_then(|mut file| file.write_all(b"probe"))
        .and_then(|()| std::fs::remove_file(&probe));
    if let Err(error) = wrote {
        findings.failed(
            "spool",
            format!("{} cannot be written: {error}", nearest.display()),
            "give this user the right to write there, or name another folder",
        );
        return;
    }
    let wanted = args.spool_bytes.map_or(SPOOL_BYTES, |it| {
        u64::try_from(it.get()).unwrap_or(u64::MAX)
    });
    match rustix::fs::statvfs(nearest) {
        Ok(space) if space.f_bavail.saturating_mul(space.f_frsize) < wanted => findings.warn(
            "spool",
            format!(
                "{} has {} free, below spool_bytes ({})",
                nearest.display(),
                output::bytes(space.f_bavail.saturating_mul(space.f_frsize)),
                output::bytes(wanted)
            ),
            "lower spool_bytes, or make room: a full disk stops the senders",
        ),
        Ok(_) => findings.ok(
            "spool",
            format!(
                "{} can be written and has room for {}{}",
                folder.display(),
                output::bytes(wanted),
                if there {
                    ""
                } else {
                    "; it is made when it is needed"
                }
            ),
        ),
        Err(error) => findings.warn(
            "spool",
            format!(
                "how much is free at {} is unknown: {error}",
                nearest.display()
            ),
            "see to it yourself",
        ),
    }
}
