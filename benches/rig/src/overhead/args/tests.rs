use clap::{CommandFactory as _, Parser};

use super::*;
use crate::overhead::variants;

#[derive(Debug, Parser)]
struct Command {
    #[command(flatten)]
    args: OverheadArgs,
}

fn cases(words: &[&str]) -> Vec<Case> {
    let words = ["overhead"].iter().chain(words);
    let command = Command::try_parse_from(words).unwrap();
    command.args.cases(&variants()).unwrap()
}

#[test]
fn flags_are_consistent() {
    Command::command().debug_assert();
    let all = cases(&[]);
    assert_eq!(all.len(), variants().len());
    assert_eq!(all[0].calls, 2_000_000);
    let args = Command::parse_from(["overhead"]).args;
    assert_eq!(args.repetitions(), 5);
    for wrong in ["--depth=0", "--threads=0", "--calls=0"] {
        assert!(
            Command::try_parse_from(["overhead", wrong]).is_err(),
            "{wrong}"
        );
    }
}

#[test]
fn every_combination_is_a_case() {
    let cases = cases(&[
        "--only",
        "none,clock",
        "--threads",
        "1,2",
        "--depth",
        "1,10,100",
    ]);
    assert_eq!(cases.len(), 12);
    let deep = cases.iter().find(|case| case.depth == 100).unwrap();
    assert_eq!(deep.calls, 200_000);
}

#[test]
fn a_variant_that_there_is_not_is_an_error() {
    let command = Command::parse_from(["overhead", "--only", "nonsense"]);
    let error = command.args.cases(&variants()).unwrap_err().to_string();
    assert!(
        error.contains("no variant nonsense") && error.contains("operation"),
        "{error}"
    );
}
