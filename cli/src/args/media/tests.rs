use crate::args::Cli;

#[test]
fn help_of_ends_names_the_media_that_are_built_in() {
    let amqp = cfg!(feature = "amqp");
    let kafka = cfg!(feature = "kafka");
    let mut command = Cli::command();
    for (name, flags) in [
        ("analyze", &["from"][..]),
        ("generate", &["to"]),
        ("receive", &["from"]),
        ("relay", &["from", "to"]),
        ("replay", &["to"]),
        ("send", &["from", "to"]),
        ("sweep", &["to"]),
        ("tap", &["from"]),
        ("validate", &["from", "to"]),
    ] {
        let sub = command.find_subcommand_mut(name).unwrap();
        for flag in flags {
            let mut arguments = sub.get_arguments();
            let argument = arguments.find(|it| it.get_id() == *flag).unwrap();
            let help = argument.get_long_help().unwrap().to_string();
            for (scheme, is_there) in [("amqp://", amqp), ("kafka://", kafka), ("file:", true)] {
                assert_eq!(help.contains(scheme), is_there, "{name} {flag}: {help}");
            }
        }
    }
}
