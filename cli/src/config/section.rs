//! Which arguments a section of the file is about.

use clap::{Arg, ArgAction, Command};

use super::file::{ConfigFile, Entry};
use crate::exit::Failure;

/// One argument that a setting is the default of.
#[derive(Debug)]
pub(super) struct Target {
    /// None for an argument of all commands.
    pub(super) subcommand: Option<String>,
    pub(super) arg: Arg,
}

/// The arguments that a setting names: one of a command, one of all commands, or one of each command
/// that has the group of flags after which the section is called.
///
/// # Errors
///
/// There is no such section, or no such setting in it.
pub(super) fn targets(
    command: &Command,
    file: &ConfigFile,
    entry: &Entry,
) -> Result<Vec<Target>, Failure> {
    let scope = scope(command, &entry.section);
    if scope.is_empty() {
        let mut known: Vec<String> = commands(command)
            .map(|it| it.get_name().to_owned())
            .collect();
        known.extend(shared_groups(command));
        known.sort();
        return Err(file.failure(
            entry.line,
            format_args!(
                "[{}] is no section; there are {}{}",
                entry.section,
                known.join(", "),
                nearest(&entry.section, &known)
            ),
        ));
    }
    let mut known = Vec::new();
    let mut targets = Vec::new();
    for (subcommand, arg) in scope {
        let Some(key) = key_of(&arg) else { continue };
        if key == *entry.key {
            targets.push(Target { subcommand, arg });
        }
        known.push(key);
    }
    if targets.is_empty() {
        known.sort();
        known.dedup();
        return Err(file.failure(
            entry.line,
            format_args!(
                "{} is no setting of [{}]{}",
                entry.key,
                entry.section,
                nearest(&entry.key, &known)
            ),
        ));
    }
    Ok(targets)
}

/// The key of an argument: the flag's name with underscores. None for those that a file cannot set.
pub(super) fn key_of(arg: &Arg) -> Option<String> {
    let settable = matches!(
        arg.get_action(),
        ArgAction::Set | ArgAction::Append | ArgAction::SetTrue | ArgAction::Count
    );
    let long = arg.get_long()?;
    (settable && long != "config").then(|| long.replace('-', "_"))
}

/// The arguments of a section, each with its command.
fn scope(command: &Command, section: &str) -> Vec<(Option<String>, Arg)> {
    if let Some(sub) = commands(command).find(|it| it.get_name() == section) {
        let name = || Some(sub.get_name().to_owned());
        return sub
            .get_arguments()
            .map(|arg| (name(), arg.clone()))
            .collect();
    }
    let of_group = |command: &Command, name: Option<String>| -> Vec<(Option<String>, Arg)> {
        let Some(group) = command
            .get_groups()
            .find(|group| section_of(group.get_id().as_str()) == section)
        else {
            return Vec::new();
        };
        let ids: Vec<_> = group.get_args().cloned().collect();
        command
            .get_arguments()
            .filter(|arg| ids.contains(arg.get_id()))
            .map(|arg| (name.clone(), arg.clone()))
            .collect()
    };
    let mut scope = of_group(command, None);
    for sub in commands(command) {
        scope.extend(of_group(sub, Some(sub.get_name().to_owned())));
    }
    scope
}

/// The commands that take settings. Hidden ones are processes of other commands, which pass them
/// all that they need.
fn commands(command: &Command) -> impl Iterator<Item = &Command> {
    command
        .get_subcommands()
        .filter(|sub| !sub.is_hide_set())
        .filter(|sub| sub.get_arguments().any(|arg| key_of(arg).is_some()))
}

/// The sections that are called after a group of flags: `global`, `shipping`.
fn shared_groups(command: &Command) -> Vec<String> {
    let all = std::iter::once(command).chain(commands(command));
    let mut names: Vec<String> = all
        .flat_map(Command::get_groups)
        .map(|group| section_of(group.get_id().as_str()))
        .filter(|name| !name.is_empty())
        .filter(|name| commands(command).all(|sub| sub.get_name() != name))
        .collect();
    names.sort();
    names.dedup();
    names
}

/// `ShippingArgs` is `shipping`; what is no group of flags has no section.
fn section_of(group: &str) -> String {
    let Some(name) = group.strip_suffix("Args") else {
        return String::new();
    };
    let mut section = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && !section.is_empty() {
            section.push('_');
        }
        section.push(letter.to_ascii_lowercase());
    }
    section
}

/// The end of a message that proposes a name.
pub(super) fn nearest(word: &str, known: &[String]) -> String {
    known
        .iter()
        .map(|known| (strsim::normalized_damerau_levenshtein(word, known), known))
        .filter(|(similarity, _)| *similarity >= 0.4)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map_or_else(String::new, |(_, nearest)| {
            format!("; did you mean {nearest}?")
        })
}
