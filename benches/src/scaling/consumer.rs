//! The consuming process.

use std::io::{self, BufRead as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use baler_common::container::ChunkDecoder;
use baler_common::transport::{Received, Verdict};
use baler_rig::checksum::Checksum;
use baler_rig::cpu::process_cpu_time;
use baler_rig::lines::say;
use baler_rig::time::{nanos, now_ns};
use serde::{Deserialize, Serialize};

use crate::endpoint;
use crate::failure::Failure;

/// To read chunks from the moment the parent says anything until it has nothing more to say; says
/// [`Said`].
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Consuming {
    pub(super) uri: String,
}

/// What a consumer says, as it goes along.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) enum Said {
    /// It owns so many lanes now.
    Lanes(usize),
    /// So many chunks have arrived so far.
    Chunks(u64),
    /// The end.
    Done(Consumed),
}

/// What a consumer has done.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(super) struct Consumed {
    pub(super) records: u64,
    pub(super) hash: u64,
    pub(super) chunks: u64,
    /// When the first and the last chunk arrived, in nanoseconds since the Unix epoch.
    pub(super) first_ns: u64,
    pub(super) last_ns: u64,
    /// From the first to the last chunk.
    pub(super) cpu_seconds: f64,
}

/// A progress report is made so often, in chunks.
const REPORT_EVERY: u64 = 32;

/// And so often in time, when fewer come.
const LOOK: Duration = Duration::from_millis(2);

/// How many chunks may be held and not settled.
const DEMAND: usize = 256;

/// Reads until the parent wants no more.
pub(crate) fn consume(task: &Consuming) -> Result<(), Failure> {
    let over = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&over);
    let started = io::stdin().lock().read_line(&mut String::new());
    started.map_err(Failure::cannot("wait for the start"))?;
    thread::spawn(move || {
        for _ in io::stdin().lock().lines() {}
        told.store(true, Ordering::Release);
    });
    let mut reader = endpoint::reader(&task.uri)?;
    reader.set_demand(DEMAND);
    let mut decoder = ChunkDecoder::default();
    let (mut done, mut checksum) = (Consumed::default(), Checksum::default());
    let (mut reported, mut lanes) = (0, 0_usize);
    let mut cpu_before = Duration::ZERO;
    while !over.load(Ordering::Acquire) {
        let received = reader.receive(Instant::now() + LOOK);
        let received = match received {
            Err(error) if error.is_retryable() => continue,
            other => other.map_err(Failure::cannot("receive"))?,
        };
        match received {
            Received::Chunk(delivery) => {
                if done.chunks == 0 {
                    done.first_ns = now();
                    cpu_before = process_cpu_time();
                }
                let decoded = decoder.decode(&delivery.bytes);
                checksum.add(&decoded.map_err(Failure::cannot("decode a chunk"))?.batch);
                let settled = reader.settle(delivery.token, Verdict::Ack);
                settled.map_err(Failure::cannot("settle"))?;
                done.chunks += 1;
                if done.chunks - reported >= REPORT_EVERY {
                    reported = done.chunks;
                    say(&Said::Chunks(reported))?;
                    done.last_ns = now();
                    done.cpu_seconds = (process_cpu_time() - cpu_before).as_secs_f64();
                }
            }
            Received::Idle => {
                if done.chunks > reported {
                    reported = done.chunks;
                    say(&Said::Chunks(reported))?;
                    done.last_ns = now() - nanos(LOOK);
                    done.cpu_seconds = (process_cpu_time() - cpu_before).as_secs_f64();
                }
            }
            Received::Assigned { lanes: more } => {
                lanes += more.len();
                say(&Said::Lanes(lanes))?;
            }
            Received::Revoked { lanes: fewer, .. } => {
                lanes = lanes.saturating_sub(fewer.len());
                say(&Said::Lanes(lanes))?;
            }
            Received::Damaged(damaged) => {
                return Err(Failure::new(format!("damaged: {}", damaged.reason)));
            }
            Received::End => break,
        }
    }
    reader.close(Instant::now() + Duration::from_secs(10));
    (done.records, done.hash) = (checksum.records, checksum.hash);
    say(&Said::Done(done))
}

fn now() -> u64 {
    u64::try_from(now_ns()).unwrap_or(0)
}
