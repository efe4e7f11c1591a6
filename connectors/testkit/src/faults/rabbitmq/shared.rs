//! One node for many processes.

use std::fs::{self, File};
use std::net::TcpStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::RabbitMqNode;
use crate::faults::FaultError;

/// Ends the node once no process holds the lock. Checks only every few seconds, because the next
/// user may begin a moment after the last one ended.
const REAPER: &str = r#"
while sleep 5; do
    flock --nonblock users sh -c '
        rm -f ports
        kill -9 $(cat pid)
        ERL_EPMD_PORT=$0 epmd -kill
        rm -rf home mnesia log
    ' "$0" && exit
done
"#;

impl RabbitMqNode {
    /// Returns the node of this folder. All processes that ask for it share it, because a node for
    /// each would cost more than its use. The first process starts the node. It ends some seconds
    /// after the last process. Do not stop it: a test that stops a node [starts](Self::start) its
    /// own.
    ///
    /// # Errors
    ///
    /// RabbitMQ is not installed, or the node does not start.
    pub fn shared(folder: &Path) -> Result<Self, FaultError> {
        fs::create_dir_all(folder).map_err(FaultError::io("make the node's folder"))?;
        let open = |name: &str| File::create(folder.join(name));
        let starting = open("starting").map_err(FaultError::io("make a lock"))?;
        let locked = starting.lock();
        locked.map_err(FaultError::io("take the lock for starting"))?;
        let users = open("users").map_err(FaultError::io("make a lock"))?;
        let locked = users.lock_shared();
        locked.map_err(FaultError::io("take the lock of the node's users"))?;
        // The lock is held until this process ends in any way. A test that keeps only the URI uses
        // the node, too.
        std::mem::forget(users);
        if let Some(node) = Self::running(folder) {
            return Ok(node);
        }
        let mut node = Self::in_folder(folder, "")?;
        node.restart()?;
        let ports = format!("{} {} {}", node.port, node.epmd_port, node.dist_port);
        let written = fs::write(folder.join("ports"), ports);
        written.map_err(FaultError::io("write the node's ports"))?;
        let mut reaper = Command::new("sh")
            .args(["-c", REAPER, &node.epmd_port.to_string()])
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .map_err(FaultError::io("run a shell"))?;
        // The script outlives this process, most of the time.
        std::thread::spawn(move || reaper.wait());
        node.shared = true;
        Ok(node)
    }

    /// Returns the node in this folder, if it runs.
    fn running(folder: &Path) -> Option<Self> {
        let ports = fs::read_to_string(folder.join("ports")).ok()?;
        let mut ports = ports.split(' ').filter_map(|port| port.parse().ok());
        let node = Self {
            folder: folder.into(),
            home: folder.join("home"),
            port: ports.next()?,
            epmd_port: ports.next()?,
            dist_port: ports.next()?,
            shared: true,
            guard: None,
        };
        let found = TcpStream::connect_timeout(&node.address(), Duration::from_secs(5));
        if found.is_err() {
            // Its users were killed, and the node too.
            node.end();
            fs::create_dir_all(folder).ok();
            return None;
        }
        Some(node)
    }
}
