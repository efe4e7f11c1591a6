use crate::args::Cli;

/// The lines of a unit, and of the container's command.
const UNIT: &str = include_str!("../../../../deploy/baler-relay.service");
const CONTAINERFILE: &str = include_str!("../../../../deploy/Containerfile");

fn setting(name: &str) -> &'static str {
    let line = UNIT.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|rest| rest.strip_prefix('=')).unwrap()
}

fn parse(words: Vec<String>) {
    let matches = Cli::command().try_get_matches_from(
        words
            .into_iter()
            // The settings of the environment file.
            .chain(["--to".to_owned(), "null:".to_owned()]),
    );
    assert_eq!(matches.unwrap().subcommand_name(), Some("relay"));
}

#[test]
fn the_unit_and_the_container_call_the_program_as_it_is() {
    let start = setting("ExecStart").split_whitespace();
    parse(start.map(str::to_owned).collect());
    let command = CONTAINERFILE
        .lines()
        .find_map(|line| line.strip_prefix("CMD "))
        .unwrap();
    let words: Vec<String> = serde_json::from_str(command).unwrap();
    parse(std::iter::once("baler".to_owned()).chain(words).collect());
}

#[test]
fn the_unit_waits_longer_than_the_program_drains_and_keeps_its_files_where_it_may_write() {
    let start = setting("ExecStart");
    let words: Vec<&str> = start.split_whitespace().collect();
    let value = |flag: &str| words[words.iter().position(|word| *word == flag).unwrap() + 1];
    let seconds = |text: &str| text.trim_end_matches('s').parse::<u32>().unwrap();
    assert!(seconds(setting("TimeoutStopSec")) > seconds(value("--shutdown-timeout")));
    let state = format!("/var/lib/{}/", setting("StateDirectory"));
    for flag in ["--spool", "--quarantine"] {
        assert!(value(flag).starts_with(&state), "{flag}");
    }
}
