//! One node for many test processes.

use std::fs::{self, File};
use std::net::TcpStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::RabbitMq;

/// Ends the node once no test holds the lock: looked at every few seconds, since the next test
/// may begin a moment after the last one ended.
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

impl RabbitMq {
    /// A node that all tests of a build share, each with queues of its own, since starting one for
    /// each test would cost more than the test. The first one starts it; it ends some seconds after
    /// the last one. Leave it running: tests that stop a node [start](RabbitMq::start) their own.
    ///
    /// # Panics
    ///
    /// RabbitMQ is not installed, or the node does not start.
    pub fn shared() -> Self {
        let program = std::env::current_exe().expect("the test knows its program");
        let folder = program.with_file_name("baler-rabbitmq");
        fs::create_dir_all(&folder).expect("the node's folder can be made");
        let open = |name: &str| File::create(folder.join(name)).expect("a lock can be made");
        let starting = open("starting");
        starting.lock().expect("a lock can be taken");
        // Held until this process ends, however it does.
        let users = open("users");
        users.lock_shared().expect("a lock can be taken");
        if let Some(mut node) = Self::running(&folder) {
            node.shared = Some(users);
            return node;
        }
        let mut node = Self::in_folder(&folder);
        node.restart();
        let ports = format!("{} {} {}", node.port, node.epmd_port, node.dist_port);
        fs::write(folder.join("ports"), ports).expect("the node's ports can be written");
        let mut reaper = Command::new("sh")
            .args(["-c", REAPER, &node.epmd_port.to_string()])
            .current_dir(&folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .expect("a shell can be run");
        // It outlives this process, most of the time.
        std::thread::spawn(move || reaper.wait());
        node.shared = Some(users);
        node
    }

    /// The node in this folder, if it runs.
    fn running(folder: &Path) -> Option<Self> {
        let ports = fs::read_to_string(folder.join("ports")).ok()?;
        let mut ports = ports.split(' ').filter_map(|port| port.parse().ok());
        let node = Self {
            folder: folder.into(),
            port: ports.next()?,
            epmd_port: ports.next()?,
            dist_port: ports.next()?,
            shared: None,
        };
        let found = TcpStream::connect_timeout(&node.address(), Duration::from_secs(5));
        if found.is_err() {
            // Its tests were killed, and it too.
            node.end();
            fs::create_dir_all(folder).ok();
            std::mem::forget(node);
            return None;
        }
        Some(node)
    }
}
