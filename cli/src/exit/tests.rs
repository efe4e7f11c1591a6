use super::*;

#[test]
fn help_and_reference_name_every_code() {
    let help = help();
    let readme = include_str!("../../README.md");
    for (code, meaning) in Code::ALL {
        let number = code.number();
        assert!(help.contains(&format!("{number}  {meaning}")), "{help}");
        assert!(
            readme.contains(&format!("| {number} | {meaning} |")),
            "cli/README.md lacks {number}: {meaning}"
        );
    }
}

#[test]
fn a_broken_pipe_is_a_quiet_end() {
    let failure = Failure::output("stdout", &io::ErrorKind::BrokenPipe.into());
    assert_eq!((failure.code, failure.message.as_str()), (Code::Done, ""));
}
