use super::*;

#[test]
fn every_fault_stands_in_the_reference() {
    let reference = include_str!("../../../../docs/commands/verify.md");
    for fault in FaultChoice::value_variants() {
        let name = format!("`{}`", fault.name());
        let all = *fault == FaultChoice::All;
        assert!(all || reference.contains(&name), "{name}");
    }
}

#[test]
fn help_names_the_code_of_a_broken_promise() {
    let command = VerifyArgs::augment_args(clap::Command::new("verify"));
    let help = command.get_after_long_help().unwrap().to_string();
    let code = crate::exit::Code::Broken.number();
    assert!(help.contains(&format!("else with {code}.")), "{help}");
}
