//! A setting given as a flag and in the environment is an error that names both.

use clap::parser::ValueSource;
use clap::{ArgMatches, Command};

use crate::exit::Failure;

/// Refuses settings that were given twice.
pub(super) fn refuse(command: &Command, matches: &ArgMatches) -> Result<(), Failure> {
    for arg in command.get_arguments() {
        let id = arg.get_id().as_str();
        let typed = matches.try_contains_id(id).unwrap_or(false)
            && matches.value_source(id) == Some(ValueSource::CommandLine);
        let twin = arg
            .get_env()
            .filter(|name| std::env::var_os(name).is_some());
        if let (true, Some(twin)) = (typed, twin) {
            return Err(Failure::configuration(format!(
                "--{} is given twice: as a flag and as {} in the environment; remove one",
                arg.get_long().unwrap_or(id),
                twin.to_string_lossy(),
            )));
        }
    }
    match matches.subcommand() {
        Some((name, matches)) => match command.find_subcommand(name) {
            Some(command) => refuse(command, matches),
            None => Ok(()),
        },
        None => Ok(()),
    }
}
