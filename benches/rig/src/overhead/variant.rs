//! The measured variants: the same application with different probes.

use super::application::Outer;
use super::case::Case;
use crate::harness::Failure;

/// The monitored application with a certain probe, and the library that takes the probe's data.
#[derive(Debug, Clone, Copy)]
pub struct Variant {
    /// Its name in tables, JSON and flags.
    pub name: &'static str,
    /// A description in one line.
    pub about: &'static str,
    /// The settings of a rival library, shown beside its figures; empty if there are none.
    pub settings: &'static str,
    /// Sets it up, in the process that measures it.
    pub set_up: fn(&Case) -> Result<Box<dyn Running>, Failure>,
}

impl Variant {
    /// A variant without settings to show.
    pub const fn new(
        name: &'static str,
        about: &'static str,
        set_up: fn(&Case) -> Result<Box<dyn Running>, Failure>,
    ) -> Self {
        Self {
            name,
            about,
            settings: "",
            set_up,
        }
    }

    /// Returns the same variant, with settings to show beside its figures.
    #[must_use]
    pub const fn with_settings(mut self, settings: &'static str) -> Self {
        self.settings = settings;
        self
    }
}

/// A variant that was set up.
pub trait Running {
    /// The monitored application.
    fn outer(&self) -> Outer;

    /// Waits until all records so far have been delivered.
    fn settle(&self) {}

    /// Ends it after all calling threads have ended. Returns how many of these instrumented calls
    /// have no record at the end.
    ///
    /// # Errors
    ///
    /// The account does not add up, even with the losses.
    fn finish(self: Box<Self>, calls: u64) -> Result<u64, Failure>;
}

/// An application whose probe passes nothing on.
#[derive(Debug, Clone, Copy)]
pub struct Alone(pub Outer);

impl Running for Alone {
    fn outer(&self) -> Outer {
        self.0
    }

    fn finish(self: Box<Self>, _calls: u64) -> Result<u64, Failure> {
        Ok(0)
    }
}

/// Returns the variant with this name.
///
/// # Errors
///
/// There is none; the error lists the names.
pub fn find<'a>(variants: &'a [Variant], name: &str) -> Result<&'a Variant, Failure> {
    let found = variants.iter().find(|variant| variant.name == name);
    found.ok_or_else(|| {
        let names: Vec<_> = variants.iter().map(|variant| variant.name).collect();
        Failure::new(format!(
            "there is no variant {name}; choose from {}",
            names.join(", ")
        ))
    })
}
