//! Producers and consumers as processes: started, listened to, given orders, signalled, killed.

use std::io::{BufReader, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::event::Event;
use super::oracle::{Oracle, Teller};
use super::orders::Order;
use crate::exit::{Code, Failure};

/// The oracle, and who waits for it to learn something; clones share.
#[derive(Debug, Clone, Default)]
pub(super) struct Board {
    shared: Arc<(Mutex<Oracle>, Condvar)>,
}

impl Board {
    /// The oracle.
    pub(super) fn lock(&self) -> MutexGuard<'_, Oracle> {
        self.shared.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the oracle satisfies a condition, until `by` at most; whether it does.
    pub(super) fn wait_for(&self, by: Instant, mut is_so: impl FnMut(&Oracle) -> bool) -> bool {
        let mut oracle = self.lock();
        loop {
            if is_so(&oracle) {
                return true;
            }
            let left = by.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            let told = self.shared.1.wait_timeout(oracle, left);
            oracle = told.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn tell(&self, teller: Teller, event: Event) {
        self.lock().told(teller, event);
        self.shared.1.notify_all();
    }

    fn end(&self, teller: Teller) {
        self.lock().ended(teller);
        self.shared.1.notify_all();
    }
}

/// A process of this program, running.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    stdin: Option<ChildStdin>,
    listener: Option<JoinHandle<()>>,
}

/// This program again, told nothing by the environment.
pub(super) fn program() -> Result<Command, Failure> {
    let program = std::env::current_exe()
        .map_err(|error| Failure::new(Code::Internal, format!("who am I? {error}")))?;
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("BALER_") && name != "BALER_LOG" {
            command.env_remove(name);
        }
    }
    // A Ctrl-C concerns the command; its processes end when their input does.
    command.process_group(0);
    Ok(command)
}

impl Process {
    /// Starts a process that tells events.
    ///
    /// # Errors
    ///
    /// It cannot be started.
    pub(super) fn start(
        mut command: Command,
        teller: Teller,
        board: &Board,
    ) -> Result<Self, Failure> {
        let failed = |error: std::io::Error| {
            Failure::new(Code::Internal, format!("cannot start a process: {error}"))
        };
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(failed)?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let board = board.clone();
        let listen = move || {
            let mut input = stdout.map(BufReader::new);
            while let Some(input) = &mut input {
                match Event::read(input) {
                    Ok(Some(event)) => board.tell(teller, event),
                    Ok(None) => break,
                    Err(error) => {
                        tracing::error!(?teller, %error, "a process cannot be understood");
                        break;
                    }
                }
            }
            board.end(teller);
        };
        let listener = thread::Builder::new()
            .name("baler-listen".to_owned())
            .spawn(listen)
            .map_err(failed)?;
        Ok(Self {
            child,
            stdin,
            listener: Some(listener),
        })
    }

    /// Gives an order. One that has ended needs none.
    pub(super) fn order(&mut self, order: Order) {
        if let Some(stdin) = &mut self.stdin {
            writeln!(stdin, "{order}").and_then(|()| stdin.flush()).ok();
        }
    }

    /// Asks it to end, as an operator would.
    pub(super) fn terminate(&self) {
        signal(&self.child, Signal::TERM);
    }

    /// Ends it at once; everything that it told is known when this returns.
    pub(super) fn kill(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
        self.joined();
    }

    /// Waits for its end, until `by` at most; whether it ended, everything that it told being known
    /// then.
    pub(super) fn wait(&mut self, by: Instant) -> bool {
        loop {
            match self.child.try_wait() {
                Ok(Some(_)) | Err(_) => {
                    self.joined();
                    return true;
                }
                Ok(None) if Instant::now() >= by => return false,
                Ok(None) => thread::park_timeout(Duration::from_millis(2)),
            }
        }
    }

    /// Whether it runs.
    pub(super) fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    fn joined(&mut self) {
        if let Some(listener) = self.listener.take() {
            listener.join().ok();
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Sends a signal to a child; one that has ended needs none.
pub(super) fn signal(child: &Child, signal: Signal) {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    if let Some(pid) = pid {
        kill_process(pid, signal).ok();
    }
}
