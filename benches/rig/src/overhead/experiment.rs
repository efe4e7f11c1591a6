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
    /// What there are targets for: probes and peers back to back, and probes at half a million calls
    /// a second; with instructions
    Targets,
}

/// What has targets, and what they are told by.
const TARGETS: &[&str] = &[
    "none",
    "deactivated",
    "deactivated-pattern",
    "clock",
    "operation",
    "duration",
    "aggregated",
    "aggregated-histogram",
    "events",
    "fastrace",
    "tracing-registry",
    "opentelemetry",
];

/// Those of [`TARGETS`] that are measured with more threads than the first number of them as well.
const TARGETS_THREADED: &[&str] = &["none", "clock", "operation", "duration", "aggregated"];

/// Those of [`TARGETS`] that are measured at a pace as well.
const TARGETS_PACED: &[&str] = &[
    "clock",
    "operation",
    "duration",
    "aggregated",
    "aggregated-histogram",
];

/// At which pace: half a million calls a second.
pub(super) const PACE: f64 = 500_000.0;

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
            Self::Bypass => Some(&["none", "chunk-1", "two-queues", "operation", "no-queue"]),
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
            Self::Targets => Some(TARGETS),
        }
    }

    /// Whether a variant is measured with more threads than the first number of them.
    pub(super) fn is_threaded(self, variant: &str) -> bool {
        self != Self::Targets || TARGETS_THREADED.contains(&variant)
    }

    /// What is measured at a pace beside what is measured back to back.
    pub(super) const fn also_paced(self) -> &'static [&'static str] {
        match self {
            Self::Targets => TARGETS_PACED,
            _ => &[],
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
