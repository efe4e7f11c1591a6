//! What each command's help has beside its flags: an example, and a list of media. The short help
//! (`-h`) fits a screen.

use clap::{Arg, Command};

use super::media;

/// Examples. That of a command is the first one that begins with its words.
const EXAMPLES: &[&str] = &[
    "baler demo",
    "baler demo --seconds 10 --report traces.html",
    "baler generate --records 10k --to file:///tmp/calls",
    "baler send --from 'jsonl:app.jsonl?follow' --to tcp://collector:4000",
    "baler receive --from file:///tmp/calls --format json",
    "baler analyze --from file:///tmp/calls --report traces.html",
    "baler relay --from tcp://0.0.0.0:4000 --to file:///tmp/calls",
    "baler replay quarantine --to tcp://collector:4000",
    "baler inspect /tmp/calls --records 3",
    "baler tap file:///tmp/calls --from-start --count 10",
    "baler probes list --via http://relay:9464 --token-file token",
    "baler probes activate 'shop..*' --via http://relay:9464 --token-file token",
    "baler probes deactivate 'shop..*' --via http://relay:9464 --token-file token",
    "baler top http://127.0.0.1:9464",
    "baler overhead --results overhead",
    "baler sweep --to tcp://127.0.0.1:4000 --recommend",
    "baler irl check types",
    "baler irl fmt types",
    "baler irl compat old.irl new.irl",
    "baler irl from-rust /tmp/calls --output types",
    "baler irl dump types/shop.irl",
    "baler irl generate types --language python --output generated",
    "baler instrument insert --include 'shop::till::*' --dry-run",
    "baler instrument remove --include 'shop::till::*'",
    "baler instrument list --path till",
    "baler instrument check --include 'shop::till::*'",
    "baler validate --to file:///tmp/calls --connect",
    "baler verify --to file: --faults producer-kill",
    "baler completions bash > baler.bash",
    "baler man man1",
];

/// Groups of flags that only the long help shows.
const LONG_GROUPS: [&str; 3] = ["Chunks", "Observability", "Spool"];

/// Single flags that only the long help shows.
const LONG_FLAGS: &[&str] = &[
    "adaptive",
    "adaptive_dialect",
    "broker_pid",
    "compression",
    "config",
    "consumers",
    "container",
    "csv_escape_formulas",
    "decoded_limit",
    "dictionaries",
    "executions",
    "give_up",
    "identity",
    "max_attempts",
    "max_bytes",
    "max_bytes_per_second",
    "max_chunks",
    "max_trace_duration",
    "max_waiting",
    "no_baseline",
    "operations",
    "overwrite",
    "parquet_age",
    "parquet_by",
    "parquet_records",
    "parquet_times",
    "partial_interval",
    "port_file",
    "probes_remote",
    "probes_token",
    "quarantine_bytes",
    "records_from",
    "repair",
    "schemas",
    "seed",
    "self_loops",
    "shutdown_timeout",
    "since",
    "summary",
    "traces",
    "until",
    "wait_time",
    "warm_up",
    "workers",
];

/// The end of the help of a source or target. The long help lists the media in its place.
const FOR_INSTANCE: &str = ", for instance file:///folder";

/// Adds the examples and media, and hides details from the short help.
pub(super) fn complete(command: Command) -> Command {
    complete_at(command, "baler")
}

fn complete_at(command: Command, words: &str) -> Command {
    let names: Vec<String> = command
        .get_subcommands()
        .map(|sub| sub.get_name().to_owned())
        .collect();
    let command = names.iter().fold(command, |command, name| {
        command.mut_subcommand(name, |sub| complete_at(sub, &format!("{words} {name}")))
    });
    let command = command.mut_args(|argument| {
        let is_detail = argument
            .get_help_heading()
            .is_some_and(|heading| LONG_GROUPS.contains(&heading))
            || LONG_FLAGS.contains(&argument.get_id().as_str());
        with_media(argument).hide_short_help(is_detail)
    });
    let Some(example) = example_of(words) else {
        return command;
    };
    let short = format!("Example:\n  {example}");
    let long = match command.get_after_long_help() {
        Some(more) => format!("{short}\n\n{more}"),
        None => short.clone(),
    };
    command.after_help(short).after_long_help(long)
}

/// Lists the media in the long help of a source or target that has no other long help.
fn with_media(argument: Arg) -> Arg {
    let media = match argument.get_id().as_str() {
        "from" => media::sources(),
        "to" => media::targets(),
        _ => return argument,
    };
    let help = argument.get_help().map(ToString::to_string);
    let help = help.filter(|_| argument.get_long_help().is_none());
    match help.as_deref().and_then(|it| it.strip_suffix(FOR_INSTANCE)) {
        Some(what) => argument.long_help(format!("{what}:\n\n{media}")),
        None => argument,
    }
}

/// Returns the example of the command with these words.
fn example_of(words: &str) -> Option<&'static str> {
    let begins = |it: &&str| it.strip_prefix(words).is_some_and(|it| it.starts_with(' '));
    EXAMPLES.iter().copied().find(begins)
}

#[cfg(test)]
mod tests;
