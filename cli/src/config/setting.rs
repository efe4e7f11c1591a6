//! The arguments that a section of the file can set.

use baler_analysis::text::nearest;
use clap::{Arg, ArgAction, Command};

use super::file::{ConfigFile, Entry};
use crate::exit::Failure;

/// An argument that a section of the file can set.
#[derive(Debug)]
pub(super) struct Setting<'a> {
    /// The name of its command, or of its group of flags.
    pub(super) section: String,
    /// The flag's name with underscores.
    pub(super) key: String,
    /// None for an argument of all commands.
    pub(super) subcommand: Option<&'a str>,
    pub(super) command: &'a Command,
    pub(super) arg: &'a Arg,
}

/// Returns all arguments that a file can set. An argument belongs to the section of its command,
/// and to a section named after its group of flags.
///
/// Hidden commands take no settings. Other commands start them, and pass all flags that they need.
pub(super) fn settings(root: &Command) -> Vec<Setting<'_>> {
    let visible = root.get_subcommands().filter(|sub| !sub.is_hide_set());
    let commands = visible.map(|sub| (Some(sub.get_name()), sub));
    let mut settings = Vec::new();
    for (subcommand, command) in std::iter::once((None, root)).chain(commands) {
        for arg in command.get_arguments() {
            let Some(key) = key_of(arg) else { continue };
            let groups = command.get_groups();
            let groups = groups.filter(|group| group.get_args().any(|id| id == arg.get_id()));
            let groups = groups.filter_map(|group| section_of(group.get_id().as_str()));
            let groups = groups.filter(|name| subcommand != Some(name));
            let own = subcommand.map(str::to_owned);
            settings.extend(own.into_iter().chain(groups).map(|section| Setting {
                section,
                key: key.clone(),
                subcommand,
                command,
                arg,
            }));
        }
    }
    settings
}

/// Returns the settings that an entry of the file names: one of a command, one of all commands, or
/// one of each command that has the group of flags.
///
/// # Errors
///
/// There is no such section, or no such setting in it.
pub(super) fn named<'a, 'b>(
    settings: &'b [Setting<'a>],
    file: &ConfigFile,
    entry: &Entry,
) -> Result<Vec<&'b Setting<'a>>, Failure> {
    let (section, key) = (&entry.section, &entry.key);
    let in_section = || settings.iter().filter(|it| it.section == **section);
    let named: Vec<_> = in_section().filter(|it| it.key == **key).collect();
    if !named.is_empty() {
        return Ok(named);
    }
    let keys = sorted(in_section().map(|it| it.key.clone()));
    let message = if keys.is_empty() {
        let sections = sorted(settings.iter().map(|it| it.section.clone()));
        let (all, nearest) = (sections.join(", "), nearest(section, &sections));
        format!("[{section}] is no section; there are {all}{nearest}")
    } else {
        let nearest = nearest(key, &keys);
        format!("{key} is no setting of [{section}]{nearest}")
    };
    Err(file.failure(entry.line, message))
}

fn sorted(names: impl Iterator<Item = String>) -> Vec<String> {
    let mut names: Vec<_> = names.collect();
    names.sort();
    names.dedup();
    names
}

/// Returns the key of an argument: the flag's name with underscores. `None` if a file cannot set
/// it.
fn key_of(arg: &Arg) -> Option<String> {
    let settable = matches!(
        arg.get_action(),
        ArgAction::Set | ArgAction::Append | ArgAction::SetTrue | ArgAction::Count
    );
    let long = arg.get_long()?;
    (settable && long != "config").then(|| long.replace('-', "_"))
}

/// Returns the section of a group of flags: `shipping` for `ShippingArgs`, `None` for other groups.
fn section_of(group: &str) -> Option<String> {
    let mut section = String::new();
    for letter in group.strip_suffix("Args")?.chars() {
        if letter.is_ascii_uppercase() && !section.is_empty() {
            section.push('_');
        }
        section.push(letter.to_ascii_lowercase());
    }
    Some(section)
}
