//! Private RabbitMQ nodes, and the actions of their administrator.

mod cluster;
mod shared;

pub use cluster::RabbitMqCluster;

use std::ffi::OsStr;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use super::error::within;
use super::{FaultError, ProcessGroupGuard, free_port};

/// A private RabbitMQ node on the loopback, with its own folder, ports and Erlang cookie.
///
/// Debian's package `rabbitmq-server` must be installed. The node ends with this value, and with
/// this process if the process is killed.
#[derive(Debug)]
pub struct RabbitMqNode {
    folder: PathBuf,
    /// The folder of Erlang's cookie, which the nodes of a cluster share.
    home: PathBuf,
    port: u16,
    /// Erlang's port mapper, which outlives the node.
    epmd_port: u16,
    dist_port: u16,
    /// Whether another process ends the node.
    shared: bool,
    /// Ends the node when this process is killed, unless the node is shared.
    guard: Option<ProcessGroupGuard>,
}

/// The time limit of a start, which takes 3 to 10 s on an idle machine.
const START: Duration = Duration::from_secs(120);

/// The time limit of a stop.
const STOP: Duration = Duration::from_secs(60);

/// The largest message that a node accepts, in bytes.
pub const RABBITMQ_MAX_MESSAGE_BYTES: usize = 200_000;

static STARTED: AtomicU32 = AtomicU32::new(0);

impl RabbitMqNode {
    /// Starts a node and waits until it accepts connections.
    ///
    /// # Errors
    ///
    /// RabbitMQ is not installed, or the node does not start.
    pub fn start() -> Result<Self, FaultError> {
        let node = Self::prepare()?;
        node.restart()?;
        Ok(node)
    }

    /// Prepares a node, which [`RabbitMqNode::restart`] starts.
    ///
    /// # Errors
    ///
    /// RabbitMQ is not installed.
    pub fn prepare() -> Result<Self, FaultError> {
        Self::prepare_with("")
    }

    /// Prepares a node with further lines in its `rabbitmq.conf`.
    ///
    /// # Errors
    ///
    /// RabbitMQ is not installed.
    pub fn prepare_with(settings: &str) -> Result<Self, FaultError> {
        Self::in_folder(&fresh_folder(), settings)?.guarded()
    }

    fn in_folder(folder: &Path, settings: &str) -> Result<Self, FaultError> {
        let home = folder.join("home");
        Self::with_home(folder, &home, free_port()?, settings)
    }

    fn with_home(
        folder: &Path,
        home: &Path,
        epmd_port: u16,
        settings: &str,
    ) -> Result<Self, FaultError> {
        // Report this at once, not after the first start fails.
        installed()?;
        let node = Self {
            folder: folder.into(),
            home: home.into(),
            port: free_port()?,
            epmd_port,
            dist_port: free_port()?,
            shared: false,
            guard: None,
        };
        for inner in [home, &folder.join("mnesia"), &folder.join("log")] {
            let made = fs::create_dir_all(inner);
            made.map_err(FaultError::io("make the node's folder"))?;
        }
        let write = |name: &str, text: &str| {
            let written = fs::write(folder.join(name), text);
            written.map_err(FaultError::io("write the node's settings"))
        };
        let settings = format!(
            "vm_memory_high_watermark.absolute = 512MB\n\
             disk_free_limit.absolute = 50MB\n\
             max_message_size = {RABBITMQ_MAX_MESSAGE_BYTES}\n\
             log.file.level = warning\n\
             {settings}\n"
        );
        write("rabbitmq.conf", &settings)?;
        write("advanced.config", "[].\n")?;
        write("enabled_plugins", "[].\n")?;
        write("env.conf", "")?;
        Ok(node)
    }

    /// Returns the node with a guard that ends it with this process.
    fn guarded(mut self) -> Result<Self, FaultError> {
        let epmd = format!("ERL_EPMD_PORT={} epmd -kill", self.epmd_port);
        let guard = ProcessGroupGuard::with_command(Some(&self.folder), &epmd);
        self.guard = Some(guard.map_err(FaultError::io("run a shell"))?);
        Ok(self)
    }

    /// Returns `amqp://127.0.0.1:port`, followed by the rest of the URI.
    pub fn uri(&self, rest: &str) -> String {
        format!("amqp://127.0.0.1:{}{rest}", self.port)
    }

    /// Returns the address at which the node accepts connections.
    pub fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }

    /// Returns the Erlang name of the node.
    pub(crate) fn name(&self) -> String {
        format!("baler{}@localhost", self.port)
    }

    /// Starts the node again, with the data that it kept on disk.
    ///
    /// # Errors
    ///
    /// The node does not start.
    pub fn restart(&self) -> Result<(), FaultError> {
        let log = fs::File::create(self.folder.join("output"));
        let log = log.map_err(FaultError::io("make the node's log"))?;
        let errors = log.try_clone();
        let errors = errors.map_err(FaultError::io("share the node's log"))?;
        let mut command = self.command("rabbitmq-server")?;
        command
            .stdin(Stdio::null())
            .stdout(log)
            .stderr(errors)
            // An interrupt of the owner must reach only the owner, which ends the node.
            .process_group(0);
        let script = command.spawn();
        let mut script = script.map_err(FaultError::io("run RabbitMQ's script"))?;
        if let Some(guard) = &self.guard {
            let held = guard.hold(script.id());
            held.map_err(FaultError::io("hold the node"))?;
        }
        within(START, "RabbitMQ starts", || {
            if let Ok(Some(status)) = script.try_wait() {
                let output = fs::read_to_string(self.folder.join("output"));
                let output = output.unwrap_or_else(|error| error.to_string());
                let message = format!("RabbitMQ ended with {status}: {output}");
                return Err(FaultError::Failed(message.into()));
            }
            Ok(self.speaks().then_some(()))
        })?;
        // The script ends with the node. Without this wait it would stay as a zombie.
        std::thread::spawn(move || script.wait());
        Ok(())
    }

    fn listens(&self) -> bool {
        self.connected().is_some()
    }

    /// Whether it answers the first bytes of AMQP. A node that starts under load may listen and
    /// close its connections again.
    fn speaks(&self) -> bool {
        let answer = |mut stream: TcpStream| {
            stream.set_read_timeout(Some(Duration::from_secs(2)))?;
            stream.write_all(b"AMQP\x00\x00\x09\x01")?;
            stream.read_exact(&mut [0])
        };
        self.connected()
            .is_some_and(|stream| answer(stream).is_ok())
    }

    fn connected(&self) -> Option<TcpStream> {
        let connected = TcpStream::connect_timeout(&self.address(), Duration::from_millis(200));
        // If no server listens, a connection on the loopback may get the same port that it asks
        // for, and connect to itself. The node would then count as started long before it is.
        let is_other = |stream: &TcpStream| stream.local_addr().ok() != stream.peer_addr().ok();
        connected.ok().filter(is_other)
    }

    /// Stops the node as an administrator would.
    ///
    /// # Errors
    ///
    /// The node does not stop.
    pub fn stop(&self) -> Result<(), FaultError> {
        self.signal("TERM")
    }

    /// Kills the node without a warning.
    ///
    /// # Errors
    ///
    /// The node does not end.
    pub fn kill(&self) -> Result<(), FaultError> {
        self.signal("KILL")
    }

    fn signal(&self, signal: &str) -> Result<(), FaultError> {
        let Some(pid) = self.pid() else { return Ok(()) };
        run(Command::new("kill").args(["-s", signal, &pid]));
        let process = Path::new("/proc").join(&pid);
        within(STOP, "RabbitMQ ends", || {
            // A killed node may wait, as a zombie, for the script. It is a zombie when its first
            // thread has ended; its port is closed with the last thread.
            let status = fs::read_to_string(process.join("stat")).ok();
            let ended = status.is_none_or(|it| it.contains(") Z "));
            Ok((ended && !self.listens()).then_some(()))
        })?;
        fs::remove_file(self.folder.join("pid")).ok();
        if let Some(guard) = &self.guard {
            guard.free().map_err(FaultError::io("let go of the node"))?;
        }
        Ok(())
    }

    /// Returns the process id of the node, while it runs.
    pub fn pid(&self) -> Option<String> {
        let pid = fs::read_to_string(self.folder.join("pid")).ok()?;
        Some(pid.trim().to_owned())
    }

    /// Returns a command for one of RabbitMQ's scripts, with the paths of this node in its
    /// environment.
    fn command(&self, script: &str) -> Result<Command, FaultError> {
        let mut command = Command::new(installed()?.join("sbin").join(script));
        let inner = |name: &str| self.folder.join(name);
        let mut set = |name: &str, value: &dyn AsRef<OsStr>| {
            command.env(name, value);
        };
        set("HOME", &self.home);
        set("RABBITMQ_NODENAME", &self.name());
        set("RABBITMQ_NODE_IP_ADDRESS", &"127.0.0.1");
        set("RABBITMQ_NODE_PORT", &self.port.to_string());
        set("RABBITMQ_DIST_PORT", &self.dist_port.to_string());
        set("ERL_EPMD_PORT", &self.epmd_port.to_string());
        set("ERL_EPMD_ADDRESS", &"127.0.0.1");
        // Otherwise epmd refuses to end while it believes that the killed node still lives.
        set("ERL_EPMD_RELAXED_COMMAND_CHECK", &"1");
        // Otherwise the port of the distribution listens on all addresses. One scheduler that does
        // not spin leaves the processors to its clients.
        set(
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS",
            &"-kernel inet_dist_use_interface {127,0,0,1} +S 1:1 +sbwt none",
        );
        set("ERL_CRASH_DUMP", &inner("erl_crash.dump"));
        set("RABBITMQ_MNESIA_BASE", &inner("mnesia"));
        set("RABBITMQ_LOG_BASE", &inner("log"));
        set("RABBITMQ_PID_FILE", &inner("pid"));
        set("RABBITMQ_CONFIG_FILE", &inner("rabbitmq.conf"));
        set("RABBITMQ_ADVANCED_CONFIG_FILE", &inner("advanced.config"));
        set("RABBITMQ_ENABLED_PLUGINS_FILE", &inner("enabled_plugins"));
        set("RABBITMQ_CONF_ENV_FILE", &inner("env.conf"));
        Ok(command)
    }

    /// Ends the node and its port mapper, and removes its folder.
    fn end(&self) {
        // No caller could handle the error. A process that is left shows in the list of processes.
        self.kill().ok();
        run(Command::new("epmd")
            .arg("-kill")
            .env("ERL_EPMD_PORT", self.epmd_port.to_string()));
        fs::remove_dir_all(&self.folder).ok();
    }
}

impl Drop for RabbitMqNode {
    fn drop(&mut self) {
        if !self.shared {
            self.end();
        }
    }
}

/// Runs a command whose failure shows elsewhere.
fn run(command: &mut Command) {
    command
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .ok();
}

/// Returns the folder of RabbitMQ. The script in `/usr/sbin` is no help, because it changes folder
/// and user.
fn installed() -> Result<PathBuf, FaultError> {
    let found = fs::read_dir("/usr/lib/rabbitmq/lib")
        .ok()
        .and_then(|folders| {
            let mut folders = folders.filter_map(|folder| Some(folder.ok()?.path()));
            folders.find(|folder| folder.join("sbin/rabbitmq-server").is_file())
        });
    found.ok_or(FaultError::NotInstalled)
}

/// Returns a folder that no other node has.
fn fresh_folder() -> PathBuf {
    let number = STARTED.fetch_add(1, Ordering::Relaxed);
    let name = format!("baler-rabbitmq-{}-{number}", std::process::id());
    std::env::temp_dir().join(name)
}

/// The message of `rabbitmqctl` for a node that accepts connections and has not started yet.
const STARTING: &str = "requires the 'rabbit' app to be running";

impl RabbitMqNode {
    /// Runs `rabbitmqctl` and returns its output. Waits for a node that is starting.
    ///
    /// # Errors
    ///
    /// The command fails.
    pub fn control(&self, arguments: &[&str]) -> Result<String, FaultError> {
        within(START, "RabbitMQ has started", || {
            let mut command = self.command("rabbitmqctl")?;
            let output = command.args(arguments).stdin(Stdio::null()).output();
            let output = output.map_err(FaultError::io("run rabbitmqctl"))?;
            let said = String::from_utf8_lossy(&output.stdout).into_owned();
            if output.status.success() {
                return Ok(Some(said));
            }
            let complaint = String::from_utf8_lossy(&output.stderr);
            if complaint.contains(STARTING) {
                return Ok(None);
            }
            let arguments = arguments.join(" ");
            let message = format!("rabbitmqctl {arguments} failed: {said}{complaint}");
            Err(FaultError::Failed(message.into()))
        })
    }

    /// Forces declarations to disk. A node keeps them in memory for a moment (Mnesia's log, Ra's
    /// directory of quorum queues). A node that is killed in this moment forgets the queue and all
    /// confirmed messages in it. Call this after queues are declared and before the node is killed.
    ///
    /// # Errors
    ///
    /// The node does not run.
    pub fn sync_declarations(&self) -> Result<(), FaultError> {
        let sync = "mnesia:sync_log(), [dets:sync(Table) || Table <- dets:all()], ok.";
        self.control(&["eval", sync]).map(drop)
    }

    /// Closes the connections of all clients.
    ///
    /// # Errors
    ///
    /// The node does not run.
    pub fn close_connections(&self) -> Result<(), FaultError> {
        self.control(&["close_all_connections", "closed by the test of faults"])
            .map(drop)
    }

    /// Sets whether the node believes that it is short of memory. While it does, it reads nothing
    /// from connections that publish, and notifies them (`connection.blocked`).
    ///
    /// # Errors
    ///
    /// The node does not run.
    pub fn set_memory_alarm(&self, raised: bool) -> Result<(), FaultError> {
        let watermark = if raised { "0.00001" } else { "0.5" };
        self.control(&["set_vm_memory_high_watermark", watermark])
            .map(drop)
    }
}
