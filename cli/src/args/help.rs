//! What each command's help has beside its flags: an example. The short help (`-h`) fits a screen.

use clap::Command;

/// An example for each command, by its words.
const EXAMPLES: &[(&str, &str)] = &[
    ("baler", "baler demo"),
    ("baler demo", "baler demo --seconds 10 --report traces.html"),
    (
        "baler generate",
        "baler generate --records 10k --to file:///tmp/calls",
    ),
    (
        "baler send",
        "baler send --from 'jsonl:app.jsonl?follow' --to tcp://collector:4000",
    ),
    (
        "baler receive",
        "baler receive --from file:///tmp/calls --format json",
    ),
    (
        "baler analyze",
        "baler analyze --from file:///tmp/calls --report traces.html",
    ),
    (
        "baler relay",
        "baler relay --from tcp://0.0.0.0:4000 --to file:///tmp/calls",
    ),
    (
        "baler replay",
        "baler replay quarantine --to tcp://collector:4000",
    ),
    ("baler inspect", "baler inspect /tmp/calls --records 3"),
    (
        "baler tap",
        "baler tap file:///tmp/calls --from-start --count 10",
    ),
    (
        "baler probes",
        "baler probes list --via http://relay:9464 --token-file token",
    ),
    (
        "baler probes list",
        "baler probes list --via http://relay:9464 --token-file token",
    ),
    (
        "baler probes activate",
        "baler probes activate 'shop..*' --via http://relay:9464 --token-file token",
    ),
    (
        "baler probes deactivate",
        "baler probes deactivate 'shop..*' --via http://relay:9464 --token-file token",
    ),
    ("baler top", "baler top http://127.0.0.1:9464"),
    ("baler overhead", "baler overhead --results overhead"),
    (
        "baler sweep",
        "baler sweep --to tcp://127.0.0.1:4000 --recommend",
    ),
    ("baler irl", "baler irl check types"),
    ("baler irl check", "baler irl check types"),
    ("baler irl fmt", "baler irl fmt types"),
    ("baler irl compat", "baler irl compat old.irl new.irl"),
    (
        "baler irl from-rust",
        "baler irl from-rust /tmp/calls --output types",
    ),
    ("baler irl dump", "baler irl dump types/shop.irl"),
    (
        "baler irl generate",
        "baler irl generate types --language python --output generated",
    ),
    (
        "baler instrument",
        "baler instrument insert --include 'shop::till::*' --dry-run",
    ),
    (
        "baler instrument insert",
        "baler instrument insert --include 'shop::till::*' --dry-run",
    ),
    (
        "baler instrument remove",
        "baler instrument remove --include 'shop::till::*'",
    ),
    ("baler instrument list", "baler instrument list --path till"),
    (
        "baler instrument check",
        "baler instrument check --include 'shop::till::*'",
    ),
    (
        "baler validate",
        "baler validate --to file:///tmp/calls --connect",
    ),
    (
        "baler verify",
        "baler verify --to file: --faults producer-kill",
    ),
    ("baler completions", "baler completions bash > baler.bash"),
    ("baler man", "baler man man1"),
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

/// Adds the examples, and hides details from the short help.
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
        argument.hide_short_help(is_detail)
    });
    let Some((_, example)) = EXAMPLES.iter().find(|(of, _)| *of == words) else {
        return command;
    };
    let short = format!("Example:\n  {example}");
    let long = match command.get_after_long_help() {
        Some(more) => format!("{short}\n\n{more}"),
        None => short.clone(),
    };
    command.after_help(short).after_long_help(long)
}

#[cfg(test)]
mod tests;
