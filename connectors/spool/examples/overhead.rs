//! What a spool costs while the medium is fine: the same chunks with and without one.
//!
//! `cargo run --release -p baler-spool --example overhead`

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use baler_common::transport::{ChunkWriter, Confirmation, Notify};
use baler_connector_null::{NullConfig, NullWriter};
use baler_connector_testkit::ChunkSource;
use baler_spool::{Spool, SpoolConfig};

const CHUNKS: u32 = 1_000_000;
/// How many chunks are offered before confirmations are taken.
const WINDOW: u32 = 32;
const ROUNDS: usize = 11;

/// Told of every confirmation, as a collector is.
#[derive(Default)]
struct Owner(AtomicBool);

impl Notify for Owner {
    fn notify(&self) {
        self.0.store(true, Ordering::Release);
    }
}

/// Nanoseconds a chunk takes, from offer to confirmation.
fn run(writer: &mut dyn ChunkWriter, chunk: &baler_common::transport::Chunk) -> f64 {
    let mut confirmations: Vec<Confirmation> = Vec::new();
    let mut ticket = chunk.ticket;
    let start = Instant::now();
    for _ in 0..CHUNKS / WINDOW {
        for _ in 0..WINDOW {
            let mut chunk = chunk.clone();
            chunk.ticket = ticket;
            ticket += 1;
            assert!(writer.offer(chunk).is_ok(), "the medium takes everything");
        }
        assert!(writer.confirmations(&mut confirmations).is_ok());
        confirmations.clear();
    }
    start.elapsed().as_secs_f64() * 1e9 / f64::from(CHUNKS)
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let chunk = ChunkSource::new(1).next(0, 16 << 10);
    let by = || Instant::now() + Duration::from_secs(10);
    let inner = || Box::new(NullWriter::new(NullConfig::default()));
    let (mut plain, mut spooled) = (Vec::new(), Vec::new());
    // In turn, so that a noisy minute hits both.
    for _ in 0..ROUNDS {
        let mut writer = inner();
        writer.set_notify(Arc::new(Owner::default()));
        writer.reopen(by())?;
        plain.push(run(writer.as_mut(), &chunk));
        let mut writer = Spool::new(inner(), SpoolConfig::new(folder.path().join("spool")));
        writer.set_notify(Arc::new(Owner::default()));
        writer.reopen(by())?;
        spooled.push(run(&mut writer, &chunk));
    }
    for (name, times) in [("without", &mut plain), ("with", &mut spooled)] {
        times.sort_by(f64::total_cmp);
        let median = times.get(ROUNDS / 2).copied().unwrap_or_default();
        let least = times.first().copied().unwrap_or_default();
        let told = format!("{name:>7} a spool: {median:.1} ns a chunk (least {least:.1})\n");
        std::io::Write::write_all(&mut std::io::stdout(), told.as_bytes())?;
    }
    Ok(())
}
