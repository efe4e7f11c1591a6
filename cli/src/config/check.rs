//! Checks of the values in a file, by themselves and against each other.

use std::error::Error as _;

use baler_analysis::text::nearest;
use baler_common::transport::uri::Uri;
use clap::error::{ContextKind, ContextValue};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command};

use super::file::{ConfigFile, Entry, Kind};
use super::setting::{Setting, settings};
use crate::exit::Failure;

/// The flag that is a setting of media, too.
const FOLLOW: &str = "follow";

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
pub(super) fn is_excluded(setting: &Setting<'_>, typed: &ArgMatches) -> bool {
    let matches = match setting.subcommand {
        None => Some(typed),
        Some(name) => typed.subcommand_matches(name),
    };
    let Some(matches) = matches else {
        return false;
    };
    let excludes = |one: &Arg, other: &Arg| {
        let excluded = setting.command.get_arg_conflicts_with(one);
        excluded.iter().any(|it| it.get_id() == other.get_id())
    };
    setting.command.get_arguments().any(|other| {
        let id = other.get_id().as_str();
        let was_typed = matches.try_contains_id(id).unwrap_or(false)
            && matches.value_source(id) == Some(ValueSource::CommandLine);
        was_typed && (excludes(other, setting.arg) || excludes(setting.arg, other))
    })
}

/// Refuses contradictions: different values in two sections of one command, two flags that exclude
/// each other, or `--follow` beside the same setting of the URI.
///
/// A flag or a variable of the environment that overrides the file is no contradiction.
///
/// # Errors
///
/// The error names both places.
pub(crate) fn refuse_contradictions(
    command: &Command,
    matches: &ArgMatches,
    file: Option<&ConfigFile>,
) -> Result<(), Failure> {
    let Some((name, matches)) = matches.subcommand() else {
        return Ok(());
    };
    let mut settings = settings(command);
    settings.retain(|it| it.subcommand.is_none_or(|it| it == name));
    if let Some(file) = file {
        sections_agree(name, &settings, file)?;
        nothing_excluded(&settings, matches, file)?;
    }
    match command.find_subcommand(name) {
        Some(sub) => uri_settings_stand_alone(sub, matches, &settings, file),
        None => Ok(()),
    }
}

/// Refuses different values in a command's own section and in a shared section.
fn sections_agree(
    command: &str,
    settings: &[Setting<'_>],
    file: &ConfigFile,
) -> Result<(), Failure> {
    for Setting { section, key, .. } in settings.iter().filter(|it| it.section != command) {
        if let Some(own) = file.entry(command, key)
            && let Some(shared) = file.entry(section, key)
            && own.values != shared.values
        {
            let (one, other) = (own.line, shared.line);
            let message = format!(
                "{key} is given twice and differently: in [{command}] at line {one} and in \
                 [{section}] at line {other}; remove one"
            );
            return Err(file.failure(one.max(other), message));
        }
    }
    Ok(())
}

/// Refuses flags in the file that exclude each other.
fn nothing_excluded(
    settings: &[Setting<'_>],
    matches: &ArgMatches,
    file: &ConfigFile,
) -> Result<(), Failure> {
    for Setting { arg, command, .. } in settings {
        let Some(mine) = entry_of(arg, settings, file) else {
            continue;
        };
        if matches.value_source(arg.get_id().as_str()) != Some(ValueSource::DefaultValue) {
            continue;
        }
        for other in command.get_arg_conflicts_with(arg) {
            if let Some(theirs) = entry_of(other, settings, file) {
                let message = format!(
                    "{} at line {} and {} at line {} exclude each other; remove one",
                    mine.key, mine.line, theirs.key, theirs.line
                );
                return Err(file.failure(mine.line.max(theirs.line), message));
            }
        }
    }
    Ok(())
}

/// Returns the first entry of the file that sets an argument. An entry that switches it off does
/// not count.
fn entry_of<'a>(arg: &Arg, settings: &[Setting<'_>], file: &'a ConfigFile) -> Option<&'a Entry> {
    let named = settings.iter().filter(|it| it.arg.get_id() == arg.get_id());
    named
        .filter_map(|it| file.entry(&it.section, &it.key))
        .filter(|entry| entry.values.first().is_none_or(|it| it != "false"))
        .min_by_key(|entry| entry.line)
}

/// Refuses `--follow` beside `follow` in a URI: they are the same setting. All other settings of a URI
/// belong to the medium, and have nothing in common with a flag of the same name.
fn uri_settings_stand_alone(
    sub: &Command,
    matches: &ArgMatches,
    settings: &[Setting<'_>],
    file: Option<&ConfigFile>,
) -> Result<(), Failure> {
    let Some(arg) = sub.get_arguments().find(|arg| arg.get_id() == FOLLOW) else {
        return Ok(());
    };
    let text = matches.try_get_one::<String>("from").ok().flatten();
    // A wrong URI is reported when it is opened.
    let Some(Ok(mut uri)) = text.map(|text| Uri::parse(text)) else {
        return Ok(());
    };
    if !uri.take_rest().iter().any(|(name, _)| **name == *FOLLOW) {
        return Ok(());
    }
    let entry = file.and_then(|file| Some((file, entry_of(arg, settings, file)?)));
    match (matches.value_source(FOLLOW), entry) {
        (Some(ValueSource::DefaultValue), Some((file, entry))) => {
            let message = format!(
                "{FOLLOW} is given twice: in [{}] and in the URI of --from; remove one",
                entry.section
            );
            Err(file.failure(entry.line, message))
        }
        (Some(ValueSource::CommandLine | ValueSource::EnvVariable), _) => {
            Err(Failure::configuration(format!(
                "{FOLLOW} is given twice: as --{FOLLOW} and in the URI of --from; remove one"
            )))
        }
        _ => Ok(()),
    }
}
