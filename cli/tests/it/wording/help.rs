//! The help of every command, as it is shown at 80 columns. `UPDATE_GOLDEN=1` writes the files anew;
//! read the difference as a new user would.

use crate::support::{command, golden};

/// The most lines of a short help.
const SCREEN: usize = 46;

/// Returns a command's help at 80 columns.
fn help(words: &[&str], flag: &str) -> String {
    let mut command = command();
    command.env("COLUMNS", "80").args(words).arg(flag);
    let run = command.output().unwrap();
    assert!(run.status.success(), "{run:?}");
    String::from_utf8(run.stdout).unwrap()
}

/// Returns the commands in a help.
fn commands(help: &str) -> Vec<&str> {
    let (_, list) = help.split_once("\nCommands:\n").unwrap_or_default();
    let lines = list.lines().take_while(|line| !line.is_empty());
    let names = lines.filter(|line| !line.starts_with("   "));
    let names = names.filter_map(|line| line.split_whitespace().next());
    names.filter(|name| *name != "help").collect()
}

/// Adds the name, the short and the long help of a command, and of all commands below it.
fn collect(words: &[&str], all: &mut Vec<(String, String, String)>) {
    let (short, long) = (help(words, "-h"), help(words, "--help"));
    let name = [&["baler"], words].concat().join(" ");
    all.push((name, short.clone(), long));
    for name in commands(&short) {
        collect(&[words, &[name]].concat(), all);
    }
}

/// Returns the parts of a help that describe a flag with a number, a size or a time.
fn measures(help: &str) -> impl Iterator<Item = &str> {
    let flags = help.split("\n      --").skip(1);
    flags.filter(|flag| {
        let head = flag.lines().next().unwrap_or_default();
        [
            "<N>",
            "<N|auto>",
            "<N,…>",
            "<R>",
            "<RATE>",
            "<SIZE>",
            "<DURATION>",
            "<DURATION,…>",
        ]
        .iter()
        .any(|value| head.contains(value))
    })
}

#[test]
fn the_help_is_the_one_that_was_read() {
    let mut all = Vec::new();
    collect(&[], &mut all);
    assert!(all.len() > 25, "{}", all.len());
    let (mut short_text, mut long_text) = (String::new(), String::new());
    for (name, short, long) in &all {
        let lines = short.lines().count();
        assert!(lines <= SCREEN, "{name} -h has {lines} lines");
        for text in [short, long] {
            assert!(text.contains("\nExample:\n  baler "), "{name}: {text}");
            // clap does not break the line of the usage.
            let mut lines = text.lines().filter(|line| !line.starts_with("Usage: "));
            assert!(
                lines.all(|line| line.chars().count() <= 80),
                "{name}: {text}"
            );
        }
        for flag in measures(long) {
            assert!(flag.contains("[default:"), "{name}: --{flag}");
        }
        short_text.push_str(&format!("$ {name} -h\n{short}\n"));
        long_text.push_str(&format!("$ {name} --help\n{long}\n"));
    }
    for (file, text) in [("help-short.txt", short_text), ("help-long.txt", long_text)] {
        golden(file, &text);
    }
}
