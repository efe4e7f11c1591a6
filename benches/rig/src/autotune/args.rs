//! What to compare, as it is typed.

use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;

use clap::Parser;

use super::day::Phase;
use super::writing::Setting;
use crate::output::Format;

/// What chunks cost whose size the collector chooses itself, beside fixed sizes, over a day's load.
#[derive(Debug, Clone, Parser)]
#[command(name = "autotune")]
pub struct AutotuneArgs {
    /// Records a second, phase after phase: night, morning, noon, a lull, the rush, evening
    #[arg(
        long,
        value_name = "N,…",
        value_delimiter = ',',
        default_value = "100,10000,100000,1000,1000000,30000"
    )]
    pub(super) rates: Vec<NonZeroU32>,

    /// How long each phase is
    #[arg(long, value_name = "SECONDS", default_value_t = 1.5, value_parser = seconds)]
    pub(super) seconds: f64,

    /// How much of each phase is not measured: what came before is worked off
    #[arg(long, value_name = "SECONDS", default_value_t = 0.3, value_parser = seconds)]
    pub(super) warm_up: f64,

    /// The fixed sizes
    #[arg(
        long,
        value_name = "N,…",
        value_delimiter = ',',
        default_value = "1,16,32,128,1024,8192"
    )]
    pub(super) chunk_sizes: Vec<NonZeroU32>,

    /// The bound, from a record's being due to its being decoded
    #[arg(long, value_name = "MS", default_value = "100")]
    pub(super) max_latency_ms: NonZeroU32,

    /// How chunks are compressed: none, lz4, zstd, or zstd:1 to zstd:22
    #[arg(long, value_name = "NAME", default_value = "none")]
    pub(super) compression: String,

    /// How often each setting has a day; each round has all of them, in an order of its own
    #[arg(long, value_name = "R", default_value = "6")]
    pub(super) rounds: NonZeroUsize,

    /// Which records, and in which order to measure
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(super) seed: u64,

    /// How to print
    #[arg(long, value_enum, default_value = "table")]
    pub(super) format: Format,

    /// Keep what is measured in this folder
    #[arg(long, value_name = "DIR")]
    pub(super) results: Option<PathBuf>,
}

fn seconds(text: &str) -> Result<f64, String> {
    let seconds = text.parse::<f64>().ok();
    seconds
        .filter(|seconds| (0.0..=3_600.0).contains(seconds))
        .ok_or_else(|| format!("`{text}` is no number of seconds from 0 to 3600"))
}

impl AutotuneArgs {
    pub(super) fn phases(&self) -> Vec<Phase> {
        let phases = self.rates.iter().map(|rate| Phase {
            rate: rate.get(),
            seconds: self.seconds,
        });
        phases.collect()
    }

    /// Auto first.
    pub(super) fn settings(&self) -> Vec<Setting> {
        let fixed = self
            .chunk_sizes
            .iter()
            .map(|size| Setting::Fixed(size.get()));
        std::iter::once(Setting::Auto).chain(fixed).collect()
    }
}
