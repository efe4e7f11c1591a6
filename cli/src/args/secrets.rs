//! What clap says of a wrong command line, without the secrets in it.

use crate::endpoint;
use crate::exit::{Code, Failure};

/// Tells an error of clap, and ends the program with its code; a text with a secret is returned
/// without it.
///
/// clap quotes what stands in the wrong place, which may be a URI with a password.
pub(super) fn told(error: &clap::Error) -> Failure {
    let text = error.to_string();
    let typed: Vec<String> = std::env::args_os()
        .skip(1)
        .map(|argument| argument.to_string_lossy().into_owned())
        .collect();
    let masked = without_secrets(&text, &typed);
    if !error.use_stderr() || masked == text {
        error.exit();
    }
    let message = masked.trim_end();
    let message = message.strip_prefix("error: ").unwrap_or(message);
    Failure::new(Code::Usage, message)
}

/// The text, with stars in place of each argument, or value behind `=`, that looks like a URI.
fn without_secrets(text: &str, arguments: &[String]) -> String {
    let mut masked = text.to_owned();
    let values = arguments.iter().flat_map(|argument| {
        let value = argument.split_once('=').map(|(_, value)| value);
        std::iter::once(argument.as_str()).chain(value)
    });
    for value in values.filter(|it| endpoint::is_uri(it) || it.contains('@')) {
        let beginning = value.split_once(':').map(|(scheme, _)| scheme);
        let stars = match beginning.filter(|it| !it.contains('@')) {
            Some(scheme) => format!("{scheme}:***"),
            None => "***".to_owned(),
        };
        masked = masked.replace(value, &stars);
    }
    masked
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
