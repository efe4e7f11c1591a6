//! The lines of JSON in which a process and its children talk.

use std::io::{self, BufRead as _, Write as _};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::failure::Failure;

/// Tells the other side something, on standard output.
///
/// # Errors
///
/// It listens no longer.
pub fn say(value: &impl Serialize) -> Result<(), Failure> {
    let line = line(value)?;
    let mut out = io::stdout().lock();
    let said = writeln!(out, "{line}").and_then(|()| out.flush());
    said.map_err(Failure::cannot("answer"))
}

/// What is said, as a line without its end.
///
/// # Errors
///
/// It has no JSON.
pub fn line(value: &impl Serialize) -> Result<String, Failure> {
    serde_json::to_string(value).map_err(Failure::cannot("write JSON"))
}

/// What the other side said.
///
/// # Errors
///
/// It is something else.
pub fn understand<T: DeserializeOwned>(line: &str) -> Result<T, Failure> {
    serde_json::from_str(line).map_err(Failure::cannot("understand another process"))
}

/// What comes on standard input, until it ends or is something else.
pub fn listen<T: DeserializeOwned + Send + 'static>() -> Receiver<T> {
    let (tell, told) = channel();
    thread::spawn(move || {
        for line in io::stdin().lock().lines().map_while(Result::ok) {
            let Ok(line) = understand(&line) else {
                break;
            };
            if tell.send(line).is_err() {
                break;
            }
        }
    });
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_understood_and_nothing_else_is() {
        let said = line(&("lanes", 7)).unwrap();
        assert!(!said.contains('\n'));
        assert_eq!(
            understand::<(String, u32)>(&said).unwrap(),
            ("lanes".to_owned(), 7)
        );
        assert!(understand::<u32>(&said).is_err());
    }
}
