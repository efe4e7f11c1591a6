//! Whether the values of a file can be, by themselves and with each other.

use std::error::Error as _;

use baler_common::transport::uri::Uri;
use clap::error::{ContextKind, ContextValue};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command};

use super::file::{ConfigFile, Entry, Kind};
use super::section::{Target, key_of, nearest};
use crate::exit::Failure;

/// Checks a value by the argument's own parser.
pub(super) fn value(arg: &Arg, file: &ConfigFile, entry: &Entry) -> Result<(), Failure> {
    let wrong = |what: &str| {
        let (section, key) = (&entry.section, &entry.key);
        file.failure(entry.line, format_args!("[{section}] {key}: {what}"))
    };
    let expected = match arg.get_action() {
        ArgAction::SetTrue => Kind::Boolean,
        ArgAction::Count => Kind::Number,
        ArgAction::Append => Kind::List,
        _ => Kind::Text,
    };
    let fits = match expected {
        Kind::Text => matches!(entry.kind, Kind::Text | Kind::Number),
        Kind::List => entry.kind != Kind::Boolean,
        exactly => entry.kind == exactly,
    };
    if !fits {
        let (expected, found) = (expected.name(), entry.kind.name());
        return Err(wrong(&format!("it must be {expected}, not {found}")));
    }
    if expected == Kind::Boolean {
        return Ok(());
    }
    let alone = Command::new("value").no_binary_name(true).arg(
        Arg::new("value")
            .long("value")
            .num_args(1)
            .action(ArgAction::Append)
            .allow_hyphen_values(true)
            .value_parser(arg.get_value_parser().clone()),
    );
    let typed = entry.values.iter().map(|value| format!("--value={value}"));
    let Err(error) = alone.try_get_matches_from(typed) else {
        return Ok(());
    };
    if let Some(reason) = error.source() {
        return Err(wrong(&reason.to_string()));
    }
    let valid = match error.get(ContextKind::ValidValue) {
        Some(ContextValue::Strings(valid)) => valid.clone(),
        _ => Vec::new(),
    };
    let given = entry.values.join(", ");
    Err(wrong(&format!(
        "{given} is not one of {}{}",
        valid.join(", "),
        nearest(&given, &valid)
    )))
}

/// Whether a flag that excludes this setting was typed.
pub(super) fn is_excluded(root: &Command, typed: &ArgMatches, target: &Target) -> bool {
    let (command, matches) = match &target.subcommand {
        None => (Some(root), Some(typed)),
        Some(name) => (
            root.find_subcommand(name),
            typed.subcommand_matches(name.as_str()),
        ),
    };
    let (Some(command), Some(matches)) = (command, matches) else {
        return false;
    };
    let mine = target.arg.get_id();
    command.get_arguments().any(|other| {
        let either = |one: &Arg, id| {
            let excluded = command.get_arg_conflicts_with(one);
            excluded.iter().any(|it| it.get_id() == id)
        };
        let id = other.get_id();
        let was_typed = matches.try_contains_id(id.as_str()).unwrap_or(false)
            && matches.value_source(id.as_str()) == Some(ValueSource::CommandLine);
        was_typed && (either(other, mine) || either(&target.arg, id))
    })
}

/// Refuses what is said twice and differently: in two sections for one command, by two flags that
/// exclude each other, or by a flag and in the URI that it is about.
///
/// A flag or a variable of the environment that overrides the file is no contradiction.
///
/// # Errors
///
/// Both places are named.
pub(crate) fn refuse_contradictions(
    command: &Command,
    matches: &ArgMatches,
    file: Option<&ConfigFile>,
) -> Result<(), Failure> {
    let Some((name, matches)) = matches.subcommand() else {
        return Ok(());
    };
    let Some(sub) = command.find_subcommand(name) else {
        return Ok(());
    };
    if let Some(file) = file {
        sections_agree(sub, file)?;
        nothing_excluded(command, sub, matches, file)?;
    }
    uri_settings_stand_alone(sub, matches, file)
}

/// A command's own section and one that it shares.
fn sections_agree(sub: &Command, file: &ConfigFile) -> Result<(), Failure> {
    let own = |entry: &&Entry| *entry.section == *sub.get_name();
    for entry in file.entries().iter().filter(own) {
        let shared = shared_with(sub, file, &entry.key);
        if let Some(other) = shared
            && other.values != entry.values
        {
            return Err(twice(file, entry, other));
        }
    }
    Ok(())
}

/// The setting of the same flag in a section that several commands share.
fn shared_with<'a>(sub: &Command, file: &'a ConfigFile, key: &str) -> Option<&'a Entry> {
    let known = sub.get_arguments().filter_map(key_of).any(|it| it == key);
    let mut others = file.entries().iter();
    let commands = |section: &str| section == sub.get_name();
    others.find(|it| {
        known && *it.key == *key && !commands(&it.section) && is_shared(&it.section, sub)
    })
}

/// Whether a section is called after one of the command's groups of flags.
fn is_shared(section: &str, sub: &Command) -> bool {
    sub.get_groups().any(|group| {
        let name = group.get_id().as_str().to_lowercase();
        name.strip_suffix("args") == Some(&section.replace('_', ""))
    })
}

fn twice(file: &ConfigFile, entry: &Entry, other: &Entry) -> Failure {
    file.failure(
        entry.line.max(other.line),
        format_args!(
            "{} is given twice and differently: in [{}] at line {} and in [{}] at line {}; remove one",
            entry.key, entry.section, entry.line, other.section, other.line
        ),
    )
}

/// Flags that exclude each other, both in the file.
fn nothing_excluded(
    root: &Command,
    sub: &Command,
    matches: &ArgMatches,
    file: &ConfigFile,
) -> Result<(), Failure> {
    for command in [root, sub] {
        for arg in command.get_arguments() {
            let Some(mine) = in_file(command, sub, arg, file) else {
                continue;
            };
            if matches.value_source(arg.get_id().as_str()) != Some(ValueSource::DefaultValue) {
                continue;
            }
            let others = command.get_arg_conflicts_with(arg);
            for other in others {
                if let Some(theirs) = in_file(command, sub, other, file) {
                    return Err(file.failure(
                        mine.line.max(theirs.line),
                        format_args!(
                            "{} at line {} and {} at line {} exclude each other; remove one",
                            mine.key, mine.line, theirs.key, theirs.line
                        ),
                    ));
                }
            }
        }
    }
    Ok(())
}

fn in_file<'a>(
    command: &Command,
    sub: &Command,
    arg: &Arg,
    file: &'a ConfigFile,
) -> Option<&'a Entry> {
    let key = key_of(arg)?;
    let mut entries = file.entries().iter();
    entries.find(|entry| {
        let section = &*entry.section;
        let meant = section == sub.get_name() || is_shared(section, command);
        meant && *entry.key == *key && entry.values.first().is_none_or(|it| it != "false")
    })
}

/// A flag whose name is that of a setting in the URI of `--from` or `--to`.
fn uri_settings_stand_alone(
    sub: &Command,
    matches: &ArgMatches,
    file: Option<&ConfigFile>,
) -> Result<(), Failure> {
    for end in ["from", "to"] {
        let text = matches.try_get_one::<String>(end).ok().flatten();
        // What is wrong with the URI is told by whoever opens it.
        let Some(Ok(mut uri)) = text.map(|text| Uri::parse(text)) else {
            continue;
        };
        let settings = uri.take_rest();
        for arg in sub.get_arguments() {
            let Some(key) = key_of(arg) else { continue };
            let Some((name, _)) = settings.iter().find(|(name, _)| **name == *key) else {
                continue;
            };
            let id = arg.get_id().as_str();
            let entry = file.and_then(|file| in_file(sub, sub, arg, file).map(|it| (file, it)));
            match (matches.value_source(id), entry) {
                (Some(ValueSource::DefaultValue), Some((file, entry))) => {
                    return Err(file.failure(
                        entry.line,
                        format_args!(
                            "{name} is given twice: in [{}] and in the URI of --{end}; remove one",
                            entry.section
                        ),
                    ));
                }
                (Some(ValueSource::CommandLine | ValueSource::EnvVariable), _) => {
                    return Err(Failure::configuration(format!(
                        "{name} is given twice: as --{} and in the URI of --{end}; remove one",
                        key.replace('_', "-")
                    )));
                }
                _ => {}
            }
        }
    }
    Ok(())
}
