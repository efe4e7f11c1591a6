//! Flags that say nothing without another one, wherever that is set.
//!
//! clap's own `requires` sees what is typed and the environment, but not the configuration file,
//! whose settings are defaults to it.

use clap::parser::ValueSource;
use clap::{ArgMatches, Command};

use crate::exit::{Code, Failure};

/// A flag, and the one that it needs.
const NEEDS: &[(&str, &str)] = &[
    ("metrics_port_file", "metrics"),
    ("metrics_tap", "metrics"),
    ("quarantine_bytes", "quarantine"),
    ("spool_after", "spool"),
    ("spool_bytes", "spool"),
    ("spool_sync", "spool"),
];

/// The same for a command's flags whose names others have, too.
const NEEDS_OF: &[(&str, &str, &str)] = &[("top", "format", "once")];

/// Refuses a flag, or a variable, without the one that it needs. What only the file says may wait
/// there for a flag.
///
/// # Errors
///
/// Both are named.
pub(super) fn check(command: &Command, matches: &ArgMatches) -> Result<(), Failure> {
    let Some((name, matches)) = matches.subcommand() else {
        return Ok(());
    };
    let Some(command) = command.find_subcommand(name) else {
        return Ok(());
    };
    let of_command = NEEDS_OF.iter().filter(|(of, _, _)| *of == name);
    let pairs = NEEDS.iter().copied();
    for (flag, needed) in pairs.chain(of_command.map(|(_, flag, needed)| (*flag, *needed))) {
        let source = |id| {
            let is_known = matches.try_contains_id(id).is_ok();
            is_known.then(|| matches.value_source(id)).flatten()
        };
        let said = matches!(
            source(flag),
            Some(ValueSource::CommandLine | ValueSource::EnvVariable)
        );
        if said && !is_set(matches, needed) {
            let long = |id: &str| {
                let mut arguments = command.get_arguments();
                let argument = arguments.find(|argument| argument.get_id() == id);
                argument.and_then(clap::Arg::get_long).unwrap_or_default()
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

/// Whether a flag has a value, or a switch is on.
fn is_set(matches: &ArgMatches, id: &str) -> bool {
    match matches.try_get_one::<bool>(id) {
        Ok(switch) => switch.is_some_and(|on| *on),
        Err(_) => matches.try_contains_id(id).unwrap_or(false),
    }
}

#[cfg(test)]
mod tests {
    use clap::Args as _;

    use super::*;
    use crate::args::{Cli, ObserveArgs, QuarantineArgs, SpoolArgs, TopArgs};

    fn told(arguments: &[&str]) -> Option<String> {
        let command = Cli::command();
        let matches = command.clone().try_get_matches_from(arguments).unwrap();
        check(&command, &matches).err().map(|it| it.message)
    }

    #[test]
    fn both_flags_are_named() {
        let send = ["baler", "send", "--from", "null:", "--to", "null:"];
        let with = |more: &[&'static str]| told(&[&send, more].concat());
        let message = with(&["--spool-after", "1s"]).unwrap();
        assert!(
            message.starts_with("--spool-after needs --spool, "),
            "{message}"
        );
        assert_eq!(with(&["--spool-after", "1s", "--spool", "x"]), None);
        assert!(with(&["--metrics-tap", "f"]).is_some());
        assert_eq!(with(&["--metrics-tap", "f", "--metrics", "1"]), None);
        assert!(told(&["baler", "top", "--format", "json"]).is_some());
        assert_eq!(told(&["baler", "top", "--format", "json", "--once"]), None);
        assert_eq!(with(&["--format", "json"]), None);
    }

    #[test]
    fn every_name_is_that_of_a_flag() {
        let mut command = Command::new("all");
        for augment in [
            ObserveArgs::augment_args,
            QuarantineArgs::augment_args,
            SpoolArgs::augment_args,
        ] {
            command = augment(command);
        }
        let known =
            |command: &Command, id: &str| command.get_arguments().any(|it| it.get_id() == id);
        for (flag, needed) in NEEDS {
            assert!(known(&command, flag) && known(&command, needed), "{flag}");
        }
        let top = TopArgs::augment_args(Command::new("top"));
        for (_, flag, needed) in NEEDS_OF {
            assert!(known(&top, flag) && known(&top, needed), "{flag}");
        }
    }
}
