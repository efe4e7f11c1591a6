//! Child processes, so that each end has CPU time and memory of its own.

use std::env;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::process::{Child as Process, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

/// A child process that reads orders and writes results, both in lines.
///
/// Its standard error is the parent's. It is killed when this value is dropped.
#[derive(Debug)]
pub struct Child {
    process: Process,
    orders: Option<ChildStdin>,
    lines: Receiver<String>,
}

impl Child {
    /// Starts this very program with other arguments.
    ///
    /// # Errors
    ///
    /// It cannot be started.
    pub fn of_this_program(arguments: &[&str]) -> io::Result<Self> {
        let mut command = Command::new(env::current_exe()?);
        command.args(arguments);
        Self::start(command)
    }

    /// Starts a command.
    ///
    /// # Errors
    ///
    /// It cannot be started.
    pub fn start(mut command: Command) -> io::Result<Self> {
        let mut process = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let orders = process.stdin.take();
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
            orders,
            lines,
        })
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Sends it a line.
    ///
    /// # Errors
    ///
    /// It reads no longer.
    pub fn send(&mut self, line: &str) -> io::Result<()> {
        let orders = self.orders.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        // In one call, so that the child never sees half a line.
        orders.write_all(format!("{line}\n").as_bytes())
    }

    /// Waits for its next line until `by`.
    ///
    /// # Errors
    ///
    /// `TimedOut`: it wrote no line. `UnexpectedEof`: it has ended.
    pub fn line(&self, by: Instant) -> io::Result<String> {
        let left = by.saturating_duration_since(Instant::now());
        self.lines.recv_timeout(left).map_err(|error| match error {
            RecvTimeoutError::Timeout => {
                io::Error::new(io::ErrorKind::TimedOut, "the child process writes nothing")
            }
            RecvTimeoutError::Disconnected => {
                io::Error::new(io::ErrorKind::UnexpectedEof, "the child process has ended")
            }
        })
    }

    /// A line that it has written already.
    pub fn waiting_line(&self) -> Option<String> {
        self.lines.try_recv().ok()
    }

    /// Closes its standard input and waits for its end; kills it after `patience`. Returns whether it
    /// succeeded.
    ///
    /// # Errors
    ///
    /// It cannot be waited for.
    pub fn end(mut self, patience: Duration) -> io::Result<bool> {
        drop(self.orders.take());
        let by = Instant::now() + patience;
        // Its output ends when it does.
        loop {
            match self.line(by) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => break,
                Err(_) => {
                    self.process.kill()?;
                    break;
                }
            }
        }
        Ok(self.process.wait()?.success())
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // Killing a process that has ended does nothing.
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_secs(20);

    fn cat() -> Child {
        Child::start(Command::new("cat")).unwrap()
    }

    #[test]
    fn lines_go_both_ways_and_the_end_of_orders_is_the_end() {
        let mut child = cat();
        for line in ["one", "two"] {
            child.send(line).unwrap();
        }
        let by = Instant::now() + SOON;
        assert_eq!(child.line(by).unwrap(), "one");
        assert_eq!(child.line(by).unwrap(), "two");
        assert!(child.end(SOON).unwrap());
    }

    #[test]
    fn silence_and_death_differ() {
        let mut child = cat();
        let silent = child.line(Instant::now()).unwrap_err();
        assert_eq!(silent.kind(), io::ErrorKind::TimedOut);
        child.process.kill().unwrap();
        let dead = child.line(Instant::now() + SOON).unwrap_err();
        assert_eq!(dead.kind(), io::ErrorKind::UnexpectedEof);
    }
}
