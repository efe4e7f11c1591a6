//! Lines of JSON between a process and its children.

use std::io::{self, BufRead as _, Write as _};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::failure::Failure;

/// Prints a value as a line of JSON on standard output.
///
/// # Errors
///
/// The other process reads no longer.
pub fn print_line(value: &impl Serialize) -> Result<(), Failure> {
    let line = to_line(value)?;
    let mut out = io::stdout().lock();
    let printed = writeln!(out, "{line}").and_then(|()| out.flush());
    printed.map_err(Failure::cannot("answer"))
}

/// A value as JSON without line breaks.
///
/// # Errors
///
/// It has no JSON.
pub fn to_line(value: &impl Serialize) -> Result<String, Failure> {
    serde_json::to_string(value).map_err(Failure::cannot("write JSON"))
}

/// The value of a line of JSON.
///
/// # Errors
///
/// It is another type.
pub fn parse_line<T: DeserializeOwned>(line: &str) -> Result<T, Failure> {
    serde_json::from_str(line).map_err(Failure::cannot("understand another process"))
}

/// The values of the lines on standard input, until it ends or has another type.
pub fn listen<T: DeserializeOwned + Send + 'static>() -> Receiver<T> {
    let (sender, values) = channel();
    thread::spawn(move || {
        for line in io::stdin().lock().lines().map_while(Result::ok) {
            let Ok(line) = parse_line(&line) else {
                break;
            };
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_passes_as_a_line_and_another_type_is_refused() {
        let printed = to_line(&("lanes", 7)).unwrap();
        assert!(!printed.contains('\n'));
        assert_eq!(
            parse_line::<(String, u32)>(&printed).unwrap(),
            ("lanes".to_owned(), 7)
        );
        assert!(parse_line::<u32>(&printed).is_err());
    }
}
