//! Flags of `baler relay`.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::{DocumentFormat, GiveUpArgs, ObserveArgs, QuarantineArgs, SpoolArgs, media, values};

/// Flags of `baler relay`.
#[derive(Debug, Args)]
pub(crate) struct RelayArgs {
    #[arg(
        long,
        value_name = "URI",
        env = "BALER_FROM",
        hide_env_values = true,
        help = format!("Where the chunks come from: {}", media::sources())
    )]
    pub(crate) from: String,
    #[arg(
        long,
        value_name = "URI",
        env = "BALER_TO",
        hide_env_values = true,
        help = format!("Where the chunks go: {}", media::targets())
    )]
    pub(crate) to: String,
    /// Wait for more at the end of a file source
    #[arg(long)]
    pub(crate) follow: bool,
    /// Stop after this many chunks, counting repeated ones
    #[arg(long, value_name = "N", value_parser = values::count)]
    pub(crate) count_chunks: Option<u64>,
    /// Stop when nothing has arrived for this long, counted from the end of the source, and
    /// everything is confirmed
    #[arg(long, value_name = "DURATION", value_parser = values::duration)]
    pub(crate) idle_timeout: Option<Duration>,
    #[command(flatten)]
    pub(crate) give_up: GiveUpArgs,
    #[command(flatten)]
    pub(crate) quarantine: QuarantineArgs,
    /// The most chunks that are received and not yet settled
    #[arg(
        long,
        value_name = "N",
        default_value = "1024",
        env = "BALER_MAX_CHUNKS"
    )]
    pub(crate) max_chunks: NonZeroUsize,
    /// The most bytes that are received and not yet settled
    #[arg(
        long,
        value_name = "SIZE",
        default_value = "64MiB",
        env = "BALER_MAX_BYTES",
        value_parser = values::size
    )]
    pub(crate) max_bytes: NonZeroUsize,
    /// How the summary is shown
    #[arg(long, value_enum, default_value = "table", env = "BALER_FORMAT")]
    pub(crate) format: DocumentFormat,
    /// Write the address that a tcp: or kafka+mock: source listens on to this file
    #[arg(long, value_name = "FILE")]
    pub(crate) port_file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) spool: SpoolArgs,
    #[command(flatten)]
    pub(crate) observe: ObserveArgs,
}

#[cfg(test)]
mod tests {
    use crate::args::Cli;

    /// The lines of a unit, and of the container's command.
    const UNIT: &str = include_str!("../../../deploy/baler-relay.service");
    const CONTAINERFILE: &str = include_str!("../../../deploy/Containerfile");

    fn setting(name: &str) -> &'static str {
        let line = UNIT.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|rest| rest.strip_prefix('=')).unwrap()
    }

    fn parse(words: Vec<String>) {
        let matches = Cli::command().try_get_matches_from(
            words
                .into_iter()
                // What the environment file holds.
                .chain(["--to".to_owned(), "null:".to_owned()]),
        );
        assert_eq!(matches.unwrap().subcommand_name(), Some("relay"));
    }

    #[test]
    fn the_unit_and_the_container_call_the_program_as_it_is() {
        let start = setting("ExecStart").split_whitespace();
        parse(start.map(str::to_owned).collect());
        let command = CONTAINERFILE
            .lines()
            .find_map(|line| line.strip_prefix("CMD "))
            .unwrap();
        let words: Vec<String> = serde_json::from_str(command).unwrap();
        parse(std::iter::once("baler".to_owned()).chain(words).collect());
    }

    #[test]
    fn the_unit_waits_longer_than_the_program_drains_and_keeps_its_files_where_it_may_write() {
        let start = setting("ExecStart");
        let words: Vec<&str> = start.split_whitespace().collect();
        let value = |flag: &str| words[words.iter().position(|word| *word == flag).unwrap() + 1];
        let seconds = |text: &str| text.trim_end_matches('s').parse::<u32>().unwrap();
        assert!(seconds(setting("TimeoutStopSec")) > seconds(value("--shutdown-timeout")));
        let state = format!("/var/lib/{}/", setting("StateDirectory"));
        for flag in ["--spool", "--quarantine"] {
            assert!(value(flag).starts_with(&state), "{flag}");
        }
    }
}
