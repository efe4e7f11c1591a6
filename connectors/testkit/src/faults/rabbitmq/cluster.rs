//! Several private nodes that form one broker.

use std::fs;
use std::path::PathBuf;
use std::thread;

use super::{RabbitMqNode, fresh_folder};
use crate::faults::free_port;
use crate::faults::{FaultError, ProcessGroupGuard};

/// Nodes on the loopback that form one broker: quorum queues and streams have a replica on each.
#[derive(Debug)]
pub struct RabbitMqCluster {
    nodes: Vec<RabbitMqNode>,
    folder: PathBuf,
    /// Removes the folder when this process is killed; the guard of each node ends the node.
    _guard: ProcessGroupGuard,
}

impl RabbitMqCluster {
    /// Starts this number of nodes and waits until they are one broker.
    ///
    /// # Errors
    ///
    /// RabbitMQ is not installed, or a node does not start or join.
    pub fn start(nodes: usize) -> Result<Self, FaultError> {
        let folder = fresh_folder();
        let home = folder.join("home");
        let guard = ProcessGroupGuard::new(Some(&folder)).map_err(FaultError::io("run a shell"))?;
        let mut cluster = Self {
            nodes: Vec::new(),
            folder,
            _guard: guard,
        };
        // The nodes find each other through one port mapper, and trust each other through one
        // cookie.
        let epmd_port = free_port()?;
        let mut join = String::new();
        for number in 0..nodes {
            let folder = cluster.folder.join(number.to_string());
            let node = RabbitMqNode::with_home(&folder, &home, epmd_port, &join)?.guarded()?;
            if number == 0 {
                join = format!(
                    "cluster_formation.peer_discovery_backend = classic_config\n\
                     cluster_formation.classic_config.nodes.1 = {}\n",
                    node.name()
                );
            }
            cluster.nodes.push(node);
        }
        // The first node makes the cookie and the broker that the others join.
        if let Some((first, others)) = cluster.nodes.split_first() {
            first.restart()?;
            first.control(&["await_startup"])?;
            start_all(others)?;
            let count =
                format!("[] =/= [N || N <- [rabbit_nodes:all_running()], length(N) =:= {nodes}].");
            crate::faults::error::within(super::START, "the nodes join", || {
                let joined = first.control(&["eval", &count])?;
                Ok((joined.trim() == "true").then_some(()))
            })?;
        }
        Ok(cluster)
    }

    /// Returns the nodes.
    pub fn nodes(&self) -> &[RabbitMqNode] {
        &self.nodes
    }

    /// Returns `amqp://` with the addresses of all nodes, followed by the rest of the URI.
    pub fn uri(&self, rest: &str) -> String {
        let hosts: Vec<_> = self
            .nodes
            .iter()
            .map(|node| node.address().to_string())
            .collect();
        format!("amqp://{}{rest}", hosts.join(","))
    }

    /// Returns the node that leads a quorum queue or a stream, according to a node that runs.
    /// Returns nothing if no node runs.
    ///
    /// # Errors
    ///
    /// `rabbitmqctl` fails.
    pub fn leader(&self, queue: &str) -> Result<Option<&RabbitMqNode>, FaultError> {
        let running = self.nodes.iter().find(|node| node.pid().is_some());
        let Some(running) = running else {
            return Ok(None);
        };
        let listed = running.control(&["list_queues", "--silent", "name", "leader"])?;
        let leader = listed.lines().find_map(|line| {
            let (name, leader) = line.split_once('\t')?;
            (name == queue).then_some(leader)
        });
        let leads = |node: &&RabbitMqNode| Some(node.name().as_str()) == leader;
        Ok(self.nodes.iter().find(leads))
    }
}

/// Starts nodes at the same time.
fn start_all(nodes: &[RabbitMqNode]) -> Result<(), FaultError> {
    thread::scope(|scope| {
        let starts: Vec<_> = nodes
            .iter()
            .map(|node| scope.spawn(|| node.restart()))
            .collect();
        for start in starts {
            match start.join() {
                Ok(started) => started?,
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        Ok(())
    })
}

impl Drop for RabbitMqCluster {
    fn drop(&mut self) {
        self.nodes.clear();
        fs::remove_dir_all(&self.folder).ok();
    }
}
