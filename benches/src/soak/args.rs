//! What to measure.

use std::num::{NonZeroU32, NonZeroU64};
use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, ValueEnum};

use crate::medium::Medium;
use crate::output::Format;

/// Memory, descriptors and threads of both ends of each connector over a long time with restarts.
#[derive(Debug, Clone, Parser)]
#[command(name = "soak", version)]
pub struct Args {
    /// How to print the rows
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub format: Format,

    /// Soak this medium only; may be given several times. All of them run at the same time
    #[arg(long, value_enum, value_name = "NAME")]
    pub only: Vec<Medium>,

    /// How long, in seconds, the warm-up included
    #[arg(long, value_name = "N", default_value_t = NonZeroU64::MIN.saturating_add(1_439))]
    pub seconds: NonZeroU64,

    /// How often the medium restarts, in seconds
    #[arg(long, value_name = "N", default_value_t = NonZeroU64::MIN.saturating_add(59))]
    pub restart_every: NonZeroU64,

    /// How many restarts are warm-up, with bursts, which no slope is taken of
    #[arg(long, value_name = "N", default_value_t = 4)]
    pub warm_up: u32,

    /// Records a second
    #[arg(long, value_name = "N", default_value_t = NonZeroU32::MIN.saturating_add(19_999))]
    pub rate: NonZeroU32,

    /// Which load
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,

    /// Where the files are [default: the system's folder for temporary files]
    #[arg(long, value_name = "DIR")]
    pub folder: Option<PathBuf>,

    /// Also write the rows and the table, with machine, command and commit, into this folder
    #[arg(long, value_name = "DIR")]
    pub results: Option<PathBuf>,
}

impl Args {
    pub(super) fn media(&self) -> Vec<Medium> {
        match self.only.is_empty() {
            true => Medium::value_variants().to_vec(),
            false => self.only.clone(),
        }
    }

    pub(super) fn duration(&self) -> Duration {
        Duration::from_secs(self.seconds.get())
    }

    pub(super) fn restart_every(&self) -> Duration {
        Duration::from_secs(self.restart_every.get())
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn flags_are_consistent() {
        Args::command().debug_assert();
        let args = Args::parse_from(["soak", "--only", "kafka-mock", "--seconds", "30"]);
        assert_eq!(args.media(), [Medium::KafkaMock]);
        assert_eq!(args.duration(), Duration::from_secs(30));
        assert_eq!(Args::parse_from(["soak"]).media().len(), 4);
    }
}
