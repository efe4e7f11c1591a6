use super::*;
use crate::args::{Cli, ObserveArgs, QuarantineArgs, SpoolArgs, TopArgs};

fn told(arguments: &[&str]) -> Option<String> {
    let command = Cli::command();
    let matches = command.clone().try_get_matches_from(arguments).unwrap();
    flags(&command, &matches).err().map(|it| it.message)
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
    let replay = ["baler", "replay", "aside", "--to", "null:"];
    let with = |more: &[&'static str]| told(&[&replay[..], more].concat());
    let message = with(&["--compression", "zstd"]).unwrap();
    assert!(
        message.starts_with("--compression needs --where or --fields"),
        "{message}"
    );
    assert_eq!(with(&["--compression", "zstd", "--where", "true"]), None);
    assert_eq!(with(&["--give-up", "1s"]), None);
}

#[test]
fn every_name_is_that_of_a_flag() {
    let mut command = Command::new("all");
    for augment in [
        #[cfg(feature = "kieker")]
        crate::args::AdaptiveArgs::augment_args,
        ObserveArgs::augment_args,
        QuarantineArgs::augment_args,
        SpoolArgs::augment_args,
    ] {
        command = augment(command);
    }
    let known = |command: &Command, id: &str| command.get_arguments().any(|it| it.get_id() == id);
    for (flag, needed) in NEEDS {
        assert!(known(&command, flag) && known(&command, needed), "{flag}");
    }
    let top = TopArgs::augment_args(Command::new("top"));
    for (_, flag, needed) in NEEDS_OF {
        assert!(known(&top, flag) && known(&top, needed), "{flag}");
    }
}

#[test]
fn arguments_that_look_like_uris_are_not_quoted() {
    for (argument, quoted, expected) in [
        ("amqp://u:hush@h/q", "amqp://u:hush@h/q", "amqp:***"),
        ("amqp:/u:hush@h/q", "amqp:/u:hush@h/q", "amqp:***"),
        ("ampq:u:hush@h", "ampq:u:hush@h", "ampq:***"),
        ("u@hush", "u@hush", "***"),
        ("--workers=amqp://u:hush@h", "amqp://u:hush@h", "amqp:***"),
        ("--wrokers", "--wrokers", "--wrokers"),
    ] {
        let text = format!("unexpected argument '{quoted}' found");
        let shown = without_secrets(&text, &[argument.to_owned()]);
        assert_eq!(shown, format!("unexpected argument '{expected}' found"));
    }
}
