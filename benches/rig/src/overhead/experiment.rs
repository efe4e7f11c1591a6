//! The experiments of the papers, by name.

use clap::ValueEnum;

/// Which variants are measured, and what is varied.
///
/// A variant that the program does not have is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Experiment {
    /// Every variant
    All,
    /// Whether a record passes one queue, two or none on its way to the encoder (Knoche, table 1)
    Bypass,
    /// Calls nested 2 to 128 deep ("Towards solving the challenge of minimal overhead monitoring",
    /// figure 5)
    Depth,
    /// Circular queue, duration record and aggregation, alone and combined (the same, tables 2 to 5)
    Optimisations,
    /// Half a million calls a second, beside clock reads alone
    Paced,
    /// What each further part of monitoring adds (Strubel and Wulf, table 2)
    Phases,
}

/// At which pace: half a million calls a second.
const PACE: f64 = 500_000.0;

/// The optimisations of the paper beside what they improve; they are combined pair by pair.
const OPTIMISATIONS: &[&str] = &[
    "none",
    "operation",
    "operation-drop-oldest",
    "duration",
    "duration-drop-oldest",
    "aggregated",
    "aggregated-drop-oldest",
    "aggregated-histogram",
];

impl Experiment {
    /// The variants, in the order of the table; `None`: all.
    pub(super) const fn variants(self) -> Option<&'static [&'static str]> {
        match self {
            Self::All => None,
            Self::Bypass => Some(&["none", "clock", "two-queues", "one-queue", "no-queue"]),
            Self::Depth | Self::Optimisations => Some(OPTIMISATIONS),
            Self::Paced => Some(&[
                "clock",
                "operation",
                "duration",
                "aggregated",
                "aggregated-histogram",
                "fastrace",
                "crossbeam-channel",
            ]),
            Self::Phases => Some(&[
                "none",
                "deactivated",
                "deactivated-pattern",
                "collection",
                "queue",
                "operation",
                "file",
                "tcp",
            ]),
        }
    }

    /// How deep calls nest.
    pub(super) const fn depths(self) -> &'static [u32] {
        match self {
            Self::Depth => &[2, 4, 8, 16, 32, 64, 128],
            _ => &[10],
        }
    }

    /// How many instrumented calls a second are made; `None`: back to back.
    pub(super) const fn rate(self) -> Option<f64> {
        match self {
            Self::Paced => Some(PACE),
            _ => None,
        }
    }
}
