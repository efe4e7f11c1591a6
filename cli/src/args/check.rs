//! Checks of a command line beyond each flag by itself.

use clap::error::{ContextKind, ContextValue};
use clap::parser::ValueSource;
use clap::{ArgMatches, Args as _, Command};

use super::{Cli, ShippingArgs};
use crate::endpoint;
use crate::exit::{Code, Failure};

/// Pairs of a flag and the flag that it needs.
const NEEDS: &[(&str, &str)] = &[
    ("metrics_port_file", "metrics"),
    ("metrics_tap", "metrics"),
    #[cfg(feature = "kieker")]
    ("probes_remote", "probes_token"),
    #[cfg(feature = "kieker")]
    ("probes_token", "metrics"),
    ("quarantine_bytes", "quarantine"),
    ("spool_after", "spool"),
    ("spool_bytes", "spool"),
    ("spool_sync", "spool"),
];

/// The same by command, for flags whose names other commands have, too.
const NEEDS_OF: &[(&str, &str, &str)] = &[("top", "format", "once")];

/// Refuses a flag or variable without the flag that it needs, and settings that were given twice.
/// The configuration file may set the needed flag.
///
/// # Errors
///
/// The error names both.
pub(super) fn flags(command: &Command, matches: &ArgMatches) -> Result<(), Failure> {
    given_twice(command, matches)?;
    let Some((name, matches)) = matches.subcommand() else {
        return Ok(());
    };
    let command = command.find_subcommand(name);
    let command = command.expect("clap has parsed its arguments");
    given_twice(command, matches)?;
    if name == "replay" {
        replay_makes_chunks(matches)?;
    }
    let of_command = NEEDS_OF.iter().filter(|(of, _, _)| *of == name);
    let of_command = of_command.map(|(_, flag, needed)| (*flag, *needed));
    for (flag, needed) in NEEDS.iter().copied().chain(of_command) {
        let is_given = matches!(
            source(matches, flag),
            Some(ValueSource::CommandLine | ValueSource::EnvVariable)
        );
        if is_given && !is_set(matches, needed) {
            let long = |id: &str| {
                let mut arguments = command.get_arguments();
                let argument = arguments.find(|argument| argument.get_id() == id);
                let long = argument.and_then(clap::Arg::get_long);
                long.expect("a command has both flags of a pair, or neither")
            };
            let (flag, needed) = (long(flag), long(needed));
            return Err(Failure::new(
                Code::Usage,
                format!(
                    "--{flag} needs --{needed}, as a flag, in the environment or in the \
                     configuration file"
                ),
            ));
        }
    }
    Ok(())
}

/// Refuses flags of new chunks for a replay that sends chunks as they are.
fn replay_makes_chunks(matches: &ArgMatches) -> Result<(), Failure> {
    if ["where", "fields"].iter().any(|id| is_set(matches, id)) {
        return Ok(());
    }
    let shipping = ShippingArgs::augment_args(Command::new("replay"));
    let typed = shipping.get_arguments().find(|argument| {
        let id = argument.get_id().as_str();
        // --give-up concerns both media, whatever is sent. Variables may be meant for other
        // commands.
        id != "give_up" && source(matches, id) == Some(ValueSource::CommandLine)
    });
    match typed.and_then(clap::Arg::get_long) {
        None => Ok(()),
        Some(flag) => Err(Failure::new(
            Code::Usage,
            format!("--{flag} needs --where or --fields: without them, chunks stay as they are"),
        )),
    }
}

/// Returns the origin of a flag's value, or `None` if the command lacks the flag.
fn source(matches: &ArgMatches, id: &str) -> Option<ValueSource> {
    let is_known = matches.try_contains_id(id).is_ok();
    is_known.then(|| matches.value_source(id)).flatten()
}

/// Whether a flag has a value, or a switch is on.
fn is_set(matches: &ArgMatches, id: &str) -> bool {
    match matches.try_get_one::<bool>(id) {
        Ok(switch) => switch.is_some_and(|on| *on),
        Err(_) => matches.try_contains_id(id).unwrap_or(false),
    }
}

fn given_twice(command: &Command, matches: &ArgMatches) -> Result<(), Failure> {
    for arg in command.get_arguments() {
        let id = arg.get_id().as_str();
        let twin = arg
            .get_env()
            .filter(|name| std::env::var_os(name).is_some());
        if let (Some(ValueSource::CommandLine), Some(twin)) = (source(matches, id), twin) {
            return Err(Failure::configuration(format!(
                "--{} is given twice: as a flag and as {} in the environment; remove one",
                arg.get_long().unwrap_or(id),
                twin.to_string_lossy(),
            )));
        }
    }
    Ok(())
}

/// Prints an error of clap, and ends the program with its code. If the text has a secret, returns
/// it without the secret instead.
///
/// clap quotes misplaced arguments, and one of them may be a URI with a password.
pub(super) fn wrong_command_line(error: &clap::Error) -> Failure {
    let without_hidden = without_hidden(error);
    let error = without_hidden.as_ref().unwrap_or(error);
    let text = error.to_string();
    let typed: Vec<String> = std::env::args_os()
        .skip(1)
        .map(|argument| argument.to_string_lossy().into_owned())
        .collect();
    let masked = without_secrets(&text, &typed);
    if !error.use_stderr() || masked == text {
        error.exit();
    }
    let message = masked.trim_end();
    let message = message.strip_prefix("error: ").unwrap_or(message);
    Failure::new(Code::Usage, message)
}

/// Returns an error that suggests commands, without the hidden ones.
fn without_hidden(error: &clap::Error) -> Option<clap::Error> {
    error.get(ContextKind::SuggestedSubcommand)?;
    let root = Cli::command();
    let is_hidden = |name: &str| {
        let command = root.find_subcommand(name);
        command.is_some_and(Command::is_hide_set)
    };
    let mut shown = clap::Error::new(error.kind()).with_cmd(&root);
    for (kind, value) in error.context() {
        let mut value = value.clone();
        if let (ContextKind::SuggestedSubcommand, ContextValue::Strings(names)) = (kind, &mut value)
        {
            names.retain(|name| !is_hidden(name));
            if names.is_empty() {
                continue;
            }
        }
        shown.insert(kind, value);
    }
    Some(shown)
}

/// Returns the text, with stars in place of each argument, or value after `=`, that looks like a
/// URI.
fn without_secrets(text: &str, arguments: &[String]) -> String {
    let mut masked = text.to_owned();
    let values = arguments.iter().flat_map(|argument| {
        let value = argument.split_once('=').map(|(_, value)| value);
        std::iter::once(argument.as_str()).chain(value)
    });
    for value in values.filter(|it| endpoint::is_uri(it) || it.contains('@')) {
        let beginning = value.split_once(':').map(|(scheme, _)| scheme);
        let stars = match beginning.filter(|it| !it.contains('@')) {
            Some(scheme) => format!("{scheme}:***"),
            None => "***".to_owned(),
        };
        masked = masked.replace(value, &stars);
    }
    masked
}

#[cfg(test)]
mod tests;
