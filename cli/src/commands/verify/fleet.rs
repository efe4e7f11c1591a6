//! The producers and consumers of a run. The fleet starts their processes, receives their events,
//! and sends them orders.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::messages::{Event, Life, Order, Role};
use super::oracle::Oracle;
use super::stand::Stand;
use crate::args::{Sabotage, VerifyArgs};
use crate::exit::{Code, Failure};
use crate::shutdown::Shutdown;

/// How often producers get records to make.
const TICK: Duration = Duration::from_millis(20);

/// Why a process is in the fleet: processes that have ended stay.
const STARTED: &str = "a process was started before it is used";

/// How a process is asked to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// By an order: it delivers everything first, and waits for its broker.
    Finish,
    /// By SIGTERM: it delivers what it can within `--shutdown-timeout`.
    Terminate,
}

impl Ending {
    /// Returns how long the process may take before it is killed.
    const fn grace(self) -> Duration {
        match self {
            // Kafka's client gives a message up after `message.timeout.ms`, 120 s by default. The
            // final report takes up to 30 s more.
            Self::Finish => Duration::from_secs(160),
            // Twice the default of `--shutdown-timeout`.
            Self::Terminate => Duration::from_secs(20),
        }
    }
}

/// The processes of a run.
pub(super) struct Fleet<'a> {
    pub(super) oracle: Oracle,
    /// Violations that the fleet itself noticed.
    pub(super) violations: Vec<String>,
    /// The number of records that are still to be given out.
    pub(super) planned: u64,
    /// At most this many records are given out in a tick.
    per_tick: u64,
    /// Records that were given out and have not arrived, without records of unknown fate. Planned
    /// records keep it within `window`.
    on_their_way: u64,
    window: u64,
    processes: BTreeMap<(Role, u16), Process>,
    events: Receiver<(Life, Option<Event>)>,
    /// The sender of the threads that read events of processes. They send `None` at the end of a
    /// process.
    sender: Sender<(Life, Option<Event>)>,
    producer_uris: Vec<String>,
    consumer_uris: Vec<String>,
    spool: Option<PathBuf>,
    lie: Lie,
    args: &'a VerifyArgs,
    verbose: u8,
    shutdown: &'a Shutdown,
}

/// The last life of a producer or consumer.
struct Process {
    life: Life,
    child: Child,
    stdin: Option<ChildStdin>,
    /// The number of records that it was given.
    given: u64,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// It was asked to end.
    Asked,
    /// All its events were received.
    Ended,
    Running,
}

/// Returns a command that runs this program, without its settings in the environment.
pub(super) fn program() -> Result<Command, Failure> {
    let program = std::env::current_exe().map_err(start_failed)?;
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("BALER_") && name != "BALER_LOG" {
            command.env_remove(name);
        }
    }
    // Ctrl-C concerns only this command. Its processes end when their standard input ends.
    command.process_group(0);
    Ok(command)
}

fn start_failed(error: std::io::Error) -> Failure {
    Failure::new(Code::Internal, format!("cannot start a process: {error}"))
}

/// Sends a signal to a child. Errors are ignored, because the child may have ended.
pub(super) fn signal(child: &Child, signal: Signal) {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    if let Some(pid) = pid {
        kill_process(pid, signal).ok();
    }
}

impl<'a> Fleet<'a> {
    /// Creates a fleet without processes.
    pub(super) fn new(
        args: &'a VerifyArgs,
        stand: &Stand,
        spool: Option<PathBuf>,
        verbose: u8,
        shutdown: &'a Shutdown,
    ) -> Self {
        let (sender, events) = channel();
        Self {
            oracle: Oracle::default(),
            violations: Vec::new(),
            planned: 0,
            per_tick: 1,
            on_their_way: 0,
            window: stand.window,
            processes: BTreeMap::new(),
            events,
            sender,
            producer_uris: stand.producer_uris.clone(),
            consumer_uris: stand.consumer_uris.clone(),
            spool,
            lie: Lie {
                sabotage: args.sabotage,
                ..Lie::default()
            },
            args,
            verbose,
            shutdown,
        }
    }

    /// Runs the fleet until `done` or `by`: records events, and gives producers records. Returns
    /// whether `done` holds. A signal ends every wait.
    pub(super) fn run_until(
        &mut self,
        by: Instant,
        mut done: impl FnMut(&mut Self) -> bool,
    ) -> bool {
        loop {
            if done(self) {
                return true;
            }
            if Instant::now() >= by || self.shutdown.is_requested() {
                return false;
            }
            self.give_out();
            let tick = (Instant::now() + TICK).min(by);
            while let Some(left) = tick.checked_duration_since(Instant::now())
                && let Ok((life, event)) = self.events.recv_timeout(left)
            {
                self.note(life, event);
            }
        }
    }

    /// Runs the fleet for this time.
    pub(super) fn pause(&mut self, time: Duration) {
        self.run_until(Instant::now() + time, |_| false);
    }

    fn note(&mut self, life: Life, event: Option<Event>) {
        if let Some(event) = event {
            let before = self.oracle.delivered();
            for event in self.lie.falsified(life, event) {
                self.oracle.note(life, event);
            }
            let arrived = self.oracle.delivered() - before;
            // Records of unknown fate are not on their way, and may arrive.
            self.on_their_way = self.on_their_way.saturating_sub(arrived);
            return;
        }
        self.oracle.ended(life);
        let process = self.processes.get_mut(&(life.role, life.number));
        let process = process.expect(STARTED);
        if process.state == State::Running {
            let message = format!("{} ended by itself", life.name());
            self.violations.push(message);
        }
        process.state = State::Ended;
    }

    /// Starts the next life of a producer or consumer, with further flags.
    ///
    /// # Errors
    ///
    /// The process cannot be started.
    pub(super) fn start(&mut self, role: Role, number: u16, more: &[&str]) -> Result<(), Failure> {
        let last = self.processes.get(&(role, number));
        let life = Life {
            role,
            number,
            life: last.map_or(0, |process| process.life.life + 1),
        };
        let mut command = self.command(life)?;
        command
            .args(more)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = command.spawn().map_err(start_failed)?;
        let stdin = child.stdin.take();
        let (sender, stdout) = (self.sender.clone(), child.stdout.take());
        let listen = move || {
            let mut input = stdout.map(BufReader::new);
            let mut line = Vec::new();
            while let Some(input) = &mut input {
                line.clear();
                // A line that a kill cut short is not an event.
                if input.read_until(b'\n', &mut line).is_err() || line.pop() != Some(b'\n') {
                    break;
                }
                match serde_json::from_slice(&line) {
                    Ok(event) => sender.send((life, Some(event))).ok(),
                    Err(error) => {
                        tracing::error!(?life, %error, "a process cannot be understood");
                        break;
                    }
                };
            }
            sender.send((life, None)).ok();
        };
        thread::Builder::new()
            .name("baler-listen".to_owned())
            .spawn(listen)
            .map_err(Failure::thread)?;
        let process = Process {
            life,
            child,
            stdin,
            given: 0,
            state: State::Running,
        };
        self.processes.insert((role, number), process);
        Ok(())
    }

    fn command(&self, Life { role, number, life }: Life) -> Result<Command, Failure> {
        let mut command = program()?;
        let (uris, name, end) = match role {
            Role::Consumer => (&self.consumer_uris, "verify-consumer", "--from"),
            Role::Producer => (&self.producer_uris, "verify-producer", "--to"),
        };
        // Consumers that join for a while share the endpoint of the others.
        let uri = uris.get(usize::from(number)).unwrap_or(&uris[0]);
        command.args([name, end, uri]);
        command.args(["--seed", &self.args.seed.to_string()]);
        if role == Role::Producer {
            command.args(["--producer", &number.to_string()]);
            command.args(["--life", &life.to_string()]);
            command.args(["--threads", &self.args.threads.to_string()]);
            command.args(self.args.shipping());
            if let Some(folder) = &self.spool {
                command.arg("--spool").arg(folder.join(number.to_string()));
                command.args(["--spool-after", "200ms"]);
            }
        }
        match self.verbose {
            0 => command.arg("--quiet").stderr(Stdio::null()),
            times => command.arg(format!("-{}", "v".repeat(usize::from(times)))),
        };
        Ok(command)
    }

    /// Returns the last life of a producer or consumer.
    pub(super) fn life(&self, role: Role, number: u16) -> Life {
        self.processes[&(role, number)].life
    }

    /// Returns the number of producers or consumers, including consumers that joined for a while.
    pub(super) fn count(&self, role: Role) -> u16 {
        let count = self.processes.keys().filter(|it| it.0 == role).count();
        u16::try_from(count).expect("processes are numbered with 16 bits")
    }

    /// Sends an order to a process. Errors are ignored, because the process may have ended.
    pub(super) fn order(&mut self, role: Role, number: u16, order: Order) {
        self.process((role, number)).order(order);
    }

    fn process(&mut self, key: (Role, u16)) -> &mut Process {
        self.processes.get_mut(&key).expect(STARTED)
    }

    /// Sends an order to all producers or all consumers.
    pub(super) fn order_all(&mut self, role: Role, order: Order) {
        for process in self.processes.values_mut() {
            if process.life.role == role {
                process.order(order);
            }
        }
    }

    /// Kills a process. Returns when all its events were received.
    pub(super) fn kill(&mut self, role: Role, number: u16) {
        let key = (role, number);
        let process = self.process(key);
        if process.state == State::Running {
            process.state = State::Asked;
        }
        process.child.kill().ok();
        process.child.wait().ok();
        while self.processes[&key].state != State::Ended {
            let (life, event) = self.events.recv().expect("the fleet holds a sender");
            self.note(life, event);
        }
        self.close_account(key);
    }

    /// Ends a process cleanly.
    pub(super) fn end(&mut self, role: Role, number: u16, how: Ending) {
        let key = (role, number);
        self.process(key).ask(how);
        self.await_end(key, how);
    }

    /// Ends all producers or all consumers cleanly, at the same time.
    pub(super) fn finish(&mut self, role: Role) {
        for process in self.processes.values_mut() {
            if process.life.role == role {
                process.ask(Ending::Finish);
            }
        }
        for number in 0..self.count(role) {
            self.await_end((role, number), Ending::Finish);
        }
    }

    /// Waits for a process that was asked to end, and kills it if it does not.
    fn await_end(&mut self, key: (Role, u16), how: Ending) {
        let by = Instant::now() + how.grace();
        let has_ended = self.run_until(by, |fleet| fleet.process(key).state == State::Ended);
        let (role, number) = key;
        let life = self.life(role, number);
        if !has_ended && !self.shutdown.is_requested() {
            self.violations.push(format!(
                "{} did not end within {:?} of being asked to",
                life.name(),
                how.grace()
            ));
        }
        self.kill(role, number);
        if has_ended && !self.oracle.has_last_word(life) {
            let message = format!("{} ended without a last word", life.name());
            self.violations.push(message);
        }
    }

    /// Takes back the records that a producer did not make before its life ended.
    fn close_account(&mut self, key: (Role, u16)) {
        let process = self.process(key);
        let given = std::mem::take(&mut process.given);
        let life = process.life;
        let (made, acknowledged) = self.oracle.made_by(life);
        let unmade = given.checked_sub(made);
        self.planned += unmade.expect("a producer makes no record that it was not given");
        // Records of unknown fate may have arrived.
        let unknown = given - acknowledged;
        self.on_their_way = self.on_their_way.saturating_sub(unknown);
    }

    /// Plans records to give out over about `ticks` ticks.
    pub(super) fn plan(&mut self, records: u64, ticks: u64) {
        self.planned += records;
        self.per_tick = records / ticks + 1;
    }

    /// Gives producers the records that are due.
    fn give_out(&mut self) {
        let producers = self
            .processes
            .values_mut()
            .filter(|it| it.life.role == Role::Producer && it.state == State::Running);
        let producers: Vec<_> = producers.collect();
        let count = producers.len() as u64;
        if count == 0 {
            return;
        }
        let room = self.window.saturating_sub(self.on_their_way);
        let due = self.planned.min(self.per_tick).min(room);
        for (position, process) in (0..count).zip(producers) {
            process.give(due / count + u64::from(position < due % count), TICK);
        }
        self.planned -= due;
        self.on_their_way += due;
    }

    /// Gives records to one producer at once, beyond what was planned.
    pub(super) fn give_to(&mut self, number: u16, records: u64) {
        let process = self.process((Role::Producer, number));
        process.give(records, Duration::ZERO);
        self.on_their_way += records;
    }
}

impl Life {
    fn name(self) -> String {
        let role = match self.role {
            Role::Consumer => "consumer",
            Role::Producer => "producer",
        };
        format!("{role} {}", self.number)
    }
}

impl Process {
    fn give(&mut self, records: u64, over: Duration) {
        if records > 0 {
            self.given += records;
            self.order(Order::Emit { records, over });
        }
    }

    fn order(&mut self, order: Order) {
        if let Some(stdin) = &mut self.stdin
            && let Ok(line) = serde_json::to_string(&order)
        {
            writeln!(stdin, "{line}").and_then(|()| stdin.flush()).ok();
        }
    }

    fn ask(&mut self, how: Ending) {
        if self.state == State::Running {
            self.state = State::Asked;
            match how {
                Ending::Finish => self.order(Order::Finish),
                Ending::Terminate => signal(&self.child, Signal::TERM),
            }
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Falsifies the event of the first consumer's third chunk, to test that the oracle notices. A
/// faulty medium would look the same to the oracle.
#[derive(Default)]
struct Lie {
    sabotage: Option<Sabotage>,
    processed: u64,
    held_back: Option<Event>,
}

impl Lie {
    /// Returns the events that the oracle gets in place of one event.
    fn falsified(&mut self, life: Life, mut event: Event) -> Vec<Event> {
        // Only the first life of consumer 0 is falsified.
        let sabotage = self.sabotage.filter(|_| (life.number, life.life) == (0, 0));
        let (Some(sabotage), Event::Processed { runs, altered, .. }) = (sabotage, &mut event)
        else {
            return vec![event];
        };
        self.processed += 1;
        if self.processed != 3 {
            return [event].into_iter().chain(self.held_back.take()).collect();
        }
        match sabotage {
            Sabotage::Alter => *altered += 1,
            Sabotage::Duplicate => return vec![event.clone(), event],
            Sabotage::Invent => runs.iter_mut().for_each(|run| run.count += 1 << 20),
            Sabotage::Lose => return Vec::new(),
            Sabotage::Reorder => {
                self.held_back = Some(event);
                return Vec::new();
            }
        }
        vec![event]
    }
}

#[cfg(test)]
mod tests;
