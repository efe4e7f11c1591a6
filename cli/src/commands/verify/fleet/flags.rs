//! How the processes of a run are started.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use clap::ValueEnum as _;

use crate::args::{Sabotage, VerifyArgs};
use crate::commands::verify::process::program;
use crate::exit::Failure;

/// What every process is started with.
#[derive(Debug)]
pub(in crate::commands::verify) struct Flags {
    seed: u64,
    threads: u16,
    producer_uris: Vec<String>,
    consumer_uris: Vec<String>,
    shipping: Vec<String>,
    /// Where producers spool, each in a folder of its own.
    spool: Option<PathBuf>,
    sabotage: Option<Sabotage>,
    verbose: u8,
}

impl Flags {
    /// Those of a run between these endpoints.
    pub(in crate::commands::verify) fn new(
        args: &VerifyArgs,
        producer_uris: Vec<String>,
        consumer_uris: Vec<String>,
        spool: Option<PathBuf>,
        verbose: u8,
    ) -> Self {
        Self {
            seed: args.seed,
            threads: args.threads,
            producer_uris,
            consumer_uris,
            shipping: args.shipping(),
            spool,
            sabotage: args.sabotage,
            verbose,
        }
    }

    /// How many producers there are to be.
    pub(super) const fn producers(&self) -> usize {
        self.producer_uris.len()
    }

    /// How many consumers there are to be.
    pub(super) const fn consumers(&self) -> usize {
        self.consumer_uris.len()
    }

    /// The command of a consumer, and which of all readers it is.
    ///
    /// # Errors
    ///
    /// This program is not to be found.
    pub(super) fn consumer(&self, number: usize, reader: usize) -> Result<Command, Failure> {
        let from = self.consumer_uris.get(number);
        let from = from.or_else(|| self.consumer_uris.first());
        let mut command = program()?;
        command.arg("verify-consumer");
        command.args(["--from", from.map_or("", String::as_str)]);
        command.args(["--seed", &self.seed.to_string()]);
        // One liar is enough.
        let lie = self.sabotage.filter(|_| reader == 0);
        if let Some(lie) = lie.and_then(|lie| lie.to_possible_value()) {
            command.args(["--sabotage", lie.get_name()]);
        }
        self.speak(&mut command);
        Ok(command)
    }

    /// The command of a life of a producer, with further flags.
    ///
    /// # Errors
    ///
    /// This program is not to be found.
    pub(super) fn producer(
        &self,
        producer: u16,
        life: u16,
        more: &[String],
    ) -> Result<Command, Failure> {
        let to = self.producer_uris.get(usize::from(producer));
        let mut command = program()?;
        command.arg("verify-producer");
        command.args(["--to", to.map_or("", String::as_str)]);
        command.args(["--seed", &self.seed.to_string()]);
        command.args(["--producer", &producer.to_string()]);
        command.args(["--life", &life.to_string()]);
        command.args(["--threads", &self.threads.to_string()]);
        command.args(&self.shipping);
        if let Some(folder) = &self.spool {
            command
                .arg("--spool")
                .arg(folder.join(producer.to_string()));
            command.args(["--spool-after", "200ms"]);
        }
        command.args(more);
        self.speak(&mut command);
        Ok(command)
    }

    fn speak(&self, command: &mut Command) {
        match self.verbose {
            0 => {
                command.arg("--quiet").stderr(Stdio::null());
            }
            times => {
                command.arg(format!("-{}", "v".repeat(usize::from(times))));
            }
        }
    }
}
