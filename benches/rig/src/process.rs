//! Child processes, so that each end has its own CPU time and memory.
//!
//! A parent passes a child its order as an argument; then both exchange lines of JSON.

use std::env;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::process::{Child as Process, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::clock::time_until;
use crate::harness::{Failure, Outcome};

/// A child process that reads and writes lines of JSON.
///
/// Its standard error goes to the parent's. It is killed when this value is dropped.
#[derive(Debug)]
pub struct Child {
    process: Process,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
}

impl Child {
    /// Starts this program with these arguments and an order after them; see [`order`].
    ///
    /// # Errors
    ///
    /// It cannot be started.
    pub fn with_order(arguments: &[&str], order: &impl Serialize) -> Result<Self, Failure> {
        let program = env::current_exe().map_err(Failure::cannot("find this program"))?;
        let mut command = Command::new(program);
        command.args(arguments).arg(to_line(order)?);
        Self::start(command)
    }

    /// Gives this program an order as [`with_order`](Self::with_order) does; returns its only
    /// answer. The limit and `go_on` are those of [`answer`](Self::answer).
    ///
    /// # Errors
    ///
    /// It cannot be started, does not answer in time, or fails.
    pub fn answer_to<T: DeserializeOwned>(
        arguments: &[&str],
        order: &impl Serialize,
        patience: Duration,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<T, Failure> {
        let child = Self::with_order(arguments, order)?;
        let answer = child.answer(patience, go_on)?;
        child.end(patience)?;
        Ok(answer)
    }

    /// Starts a command.
    ///
    /// # Errors
    ///
    /// It cannot be started.
    pub fn start(mut command: Command) -> Result<Self, Failure> {
        let mut process = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(Failure::cannot("start a process"))?;
        let input = process.stdin.take();
        let (sender, lines) = channel();
        if let Some(output) = process.stdout.take() {
            // It ends with the child's output.
            thread::spawn(move || {
                for line in BufReader::new(output).lines().map_while(Result::ok) {
                    if sender.send(line).is_err() {
                        break;
                    }
                }
            });
        }
        Ok(Self {
            process,
            input,
            lines,
        })
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Sends it a value.
    ///
    /// # Errors
    ///
    /// It has stopped reading.
    pub fn send(&mut self, value: &impl Serialize) -> Result<(), Failure> {
        let line = to_line(value)?;
        let input = self.input.as_mut();
        let input = input.ok_or_else(|| Failure::new("the input of a process is closed"))?;
        // In one call, so that the child never reads half a line.
        let sent = input.write_all(format!("{line}\n").as_bytes());
        sent.map_err(Failure::cannot("write to a process"))
    }

    /// Returns its next value; `None` if it writes none until `by`. A value that has arrived is
    /// returned even if `by` has passed.
    ///
    /// # Errors
    ///
    /// It has ended, or wrote something else.
    pub fn next<T: DeserializeOwned>(&self, by: Instant) -> Result<Option<T>, Failure> {
        match self.lines.recv_timeout(time_until(by)) {
            Ok(line) => parse_line(&line).map(Some),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(Failure::new("a process has ended early")),
        }
    }

    /// Returns its next value, which must arrive within `patience`. Calls `go_on` several times a
    /// second.
    ///
    /// # Errors
    ///
    /// As [`Child::next`], or nothing arrived in time, or `go_on` returned `false`.
    pub fn answer<T: DeserializeOwned>(
        &self,
        patience: Duration,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<T, Failure> {
        const LOOK: Duration = Duration::from_millis(200);
        let by = Instant::now() + patience;
        loop {
            let now = Instant::now();
            if let Some(value) = self.next(by.min(now + LOOK))? {
                return Ok(value);
            }
            if now >= by {
                let seconds = patience.as_secs();
                let reason = format!("a process did not answer within {seconds} s");
                return Err(Failure::new(reason));
            }
            if !go_on() {
                return Err(Failure::stopped());
            }
        }
    }

    /// Closes its standard input and waits for its end; kills it after `patience`.
    ///
    /// # Errors
    ///
    /// It failed, or cannot be waited for.
    pub fn end(mut self, patience: Duration) -> Result<(), Failure> {
        drop(self.input.take());
        let by = Instant::now() + patience;
        // Its output ends when it ends.
        loop {
            match self.lines.recv_timeout(time_until(by)) {
                Ok(_) => {}
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    self.process
                        .kill()
                        .map_err(Failure::cannot("end a process"))?;
                    break;
                }
            }
        }
        let status = self.process.wait();
        match status.map_err(Failure::cannot("wait for a process"))? {
            status if status.success() => Ok(()),
            status => Err(Failure::new(format!("a process failed: {status}"))),
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // Killing an ended process has no effect.
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

/// The word before an order to a program that has no other arguments for it.
pub const CHILD: &str = "child";

/// The order of the parent process, if this process was started with [`CHILD`].
pub fn order() -> Option<String> {
    let mut words = env::args().skip(1);
    words.next().filter(|word| word == CHILD)?;
    words.next()
}

/// Answers the order of the parent process by this function; `None` if this is no child process.
pub fn run_order<O: DeserializeOwned, A: Serialize>(
    measure: impl FnOnce(&O) -> Result<A, Failure>,
) -> Option<Result<Outcome, Failure>> {
    let order = order()?;
    let answered = parse_line(&order).and_then(|order| send_to_parent(&measure(&order)?));
    Some(answered.map(|()| Outcome::silent()))
}

/// Prints a value to the parent process.
///
/// # Errors
///
/// The parent has stopped reading.
pub fn send_to_parent(value: &impl Serialize) -> Result<(), Failure> {
    let line = to_line(value)?;
    let mut out = io::stdout().lock();
    let printed = writeln!(out, "{line}").and_then(|()| out.flush());
    printed.map_err(Failure::cannot("answer"))
}

/// Returns the values from the parent, until it closes standard input or sends something else.
pub fn from_parent<T: DeserializeOwned + Send + 'static>() -> Receiver<T> {
    let (sender, values) = channel();
    thread::spawn(move || {
        for line in io::stdin().lock().lines().map_while(Result::ok) {
            let Ok(value) = parse_line(&line) else {
                break;
            };
            if sender.send(value).is_err() {
                break;
            }
        }
    });
    values
}

/// A value as JSON without line breaks.
///
/// # Errors
///
/// It cannot be represented in JSON.
pub fn to_line(value: &impl Serialize) -> Result<String, Failure> {
    serde_json::to_string(value).map_err(Failure::cannot("write JSON"))
}

/// Parses a value from a line of JSON.
///
/// # Errors
///
/// It has another type.
pub fn parse_line<T: DeserializeOwned>(line: &str) -> Result<T, Failure> {
    serde_json::from_str(line).map_err(Failure::cannot("understand another process"))
}

#[cfg(test)]
mod tests;
