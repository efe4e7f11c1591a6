//! The configuration file: defaults for the flags of any command.
//!
//! TOML -> [`ConfigFile`] (entries with their lines) -> defaults of clap's arguments, each checked by
//! the argument's own parser; a flag that is added to a command can be set here without more code

mod check;
mod file;
mod setting;

use clap::{ArgMatches, Command};

pub(crate) use check::refuse_contradictions;
pub(crate) use file::ConfigFile;

use crate::exit::Failure;

/// Makes the settings of the file the defaults of the command's arguments. Flags and the
/// environment override them. A setting that a typed flag excludes is left out.
///
/// # Errors
///
/// A section or key is unknown, or a value is invalid. The error names the file, the line and the
/// nearest known name.
pub(crate) fn apply(
    root: &Command,
    typed: &ArgMatches,
    file: &ConfigFile,
) -> Result<Command, Failure> {
    let settings = setting::settings(root);
    let mut command = root.clone();
    for entry in file.entries() {
        for setting in setting::named(&settings, file, entry)? {
            check::value(setting.arg, file, entry)?;
            if check::is_excluded(setting, typed) {
                continue;
            }
            let values: Vec<clap::builder::OsStr> =
                entry.values.iter().cloned().map(Into::into).collect();
            let id = setting.arg.get_id();
            let set = |arg: clap::Arg| arg.required(false).default_values(values);
            command = match setting.subcommand {
                None => command.mut_arg(id, set),
                Some(name) => command.mut_subcommand(name, |sub| sub.mut_arg(id, set)),
            };
        }
    }
    Ok(command)
}
