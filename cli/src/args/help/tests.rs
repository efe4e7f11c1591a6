use super::*;
use crate::args::Cli;

/// Returns the visible commands, by their words.
fn visible(command: &Command, words: &str, found: &mut Vec<String>) {
    found.push(words.to_owned());
    for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
        visible(sub, &format!("{words} {}", sub.get_name()), found);
    }
}

#[test]
fn every_command_has_an_example_that_it_takes() {
    let mut commands = Vec::new();
    visible(&Cli::command(), "baler", &mut commands);
    for command in commands {
        let example = example_of(&command);
        let example = example.unwrap_or_else(|| panic!("{command} has no example"));
        let typed = example
            .split_once(" > ")
            .map_or(example, |(typed, _)| typed);
        // Words in quotes have single spaces.
        let parts = typed.split('\'').enumerate();
        let words = parts.flat_map(|(at, part)| match at % 2 {
            0 => part.split_whitespace().collect(),
            _ => vec![part],
        });
        let taken = Cli::command().try_get_matches_from(words);
        taken.unwrap_or_else(|error| panic!("{example}: {error}"));
        assert!(example.starts_with(&command), "{command}: {example}");
    }
}

#[test]
fn every_detail_is_a_flag() {
    fn has(command: &Command, id: &str) -> bool {
        let mut arguments = command.get_arguments();
        arguments.any(|argument| argument.get_id() == id)
            || command.get_subcommands().any(|sub| has(sub, id))
    }
    let command = Cli::command();
    let all_built_in = cfg!(all(feature = "kieker", feature = "parquet"));
    for id in LONG_FLAGS.iter().filter(|_| all_built_in) {
        assert!(has(&command, id), "{id}");
    }
}
