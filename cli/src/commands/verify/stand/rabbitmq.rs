//! `amqp+private:`: a RabbitMQ node of its own, with a proxy before it.

use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use baler_connector_testkit::faults::{RabbitMqNode, TcpProxy};

use super::{Harm, Medium, Stand, broken, faults_of_broker, name_and_settings};
use crate::args::{FaultChoice, VerifyArgs};
use crate::exit::Failure;
use crate::random::Random;

/// Faults that only this medium has.
const FAULTS: &[FaultChoice] = &[
    FaultChoice::ConnectionClosed,
    FaultChoice::Blocked,
    FaultChoice::Rebalance,
];

/// The absolute memory limit that is set after a fault.
const MEMORY: &str = "512MB";

/// How long to wait for the declaration of the queue. After that, the fault comes anyway.
const DECLARED_WITHIN: Duration = Duration::from_secs(15);

/// Settings that make a run quick.
const DEFAULTS: &[(&str, &str)] = &[
    ("heartbeat", "1s"),
    ("prefetch", "32"),
    ("connect_timeout", "5s"),
];

/// A node, and the proxy that every connection goes through.
struct Rabbit {
    node: RabbitMqNode,
    proxy: TcpProxy,
    queue: String,
}

/// Sets up the endpoint without starting its node. `rest` is the part after the scheme: the queue,
/// and settings of the endpoint.
pub(super) fn stand(args: &VerifyArgs, rest: &str) -> Result<Stand, Failure> {
    let (queue, settings) = name_and_settings(rest, DEFAULTS);
    let node = RabbitMqNode::prepare().map_err(broken)?;
    let proxy = TcpProxy::start().map_err(broken)?;
    proxy.set_target(Some(node.address()));
    let uri = format!("amqp://{}?queue={queue}&{settings}", proxy.address());
    Ok(Stand {
        producer_uris: vec![uri.clone(); args.producers.into()],
        consumer_uris: vec![uri; args.consumers.into()],
        faults: faults_of_broker(FAULTS),
        orders_competitors: false,
        window: u64::MAX,
        folders: None,
        medium: Some(Box::new(Rabbit { node, proxy, queue })),
    })
}

impl Rabbit {
    /// Waits for a limited time until the queue is running. Its clients may not have come yet.
    fn await_queue(&self) -> Result<(), Failure> {
        let until = Instant::now() + DECLARED_WITHIN;
        let serves = format!("{}\trunning", self.queue);
        // Starting rabbitmqctl takes a second, so the loop needs no pause.
        while Instant::now() < until {
            let listing = ["list_queues", "--silent", "name", "state"];
            let queues = self.node.control(&listing).map_err(broken)?;
            if queues.lines().any(|line| line.trim() == serves) {
                break;
            }
        }
        Ok(())
    }

    fn is_up(&self) -> bool {
        let address: SocketAddr = self.node.address();
        TcpStream::connect_timeout(&address, Duration::from_secs(1)).is_ok()
    }
}

impl Medium for Rabbit {
    fn network(&self, harm: Harm) {
        harm.to(&self.proxy);
    }

    fn start(&mut self) -> Result<(), Failure> {
        if self.is_up() {
            return Ok(());
        }
        self.node.restart().map_err(broken)
    }

    fn prepare(&mut self, fault: FaultChoice) -> Result<(), Failure> {
        if matches!(fault, FaultChoice::BrokerKill | FaultChoice::BrokerRestart) {
            // If a node ends during the first declaration of a quorum queue, it may keep the
            // queue's name without its members. It then refuses every message to the queue for
            // ever.
            self.await_queue()?;
            // A killed node forgets declarations that it has not written yet.
            self.node.sync_declarations().map_err(broken)?;
        }
        Ok(())
    }

    fn end(&mut self, kill: bool) -> Result<(), Failure> {
        if !kill {
            return self.node.stop().map_err(broken);
        }
        self.node.kill().map_err(broken)
    }

    fn begin(&mut self, fault: FaultChoice, _random: &mut Random) -> Result<String, Failure> {
        let control = |arguments: &[&str]| self.node.control(arguments).map_err(broken);
        match fault {
            FaultChoice::ConnectionClosed => {
                control(&["close_all_connections", "verify"])?;
                Ok("rabbitmqctl close_all_connections".to_owned())
            }
            FaultChoice::Blocked => {
                control(&["set_vm_memory_high_watermark", "absolute", "1MB"])?;
                Ok("memory alarm".to_owned())
            }
            other => Err(broken(format_args!("{} is not known here", other.name()))),
        }
    }

    fn heal(&mut self, fault: FaultChoice) -> Result<(), Failure> {
        if fault == FaultChoice::Blocked {
            let absolute = ["set_vm_memory_high_watermark", "absolute", MEMORY];
            self.node.control(&absolute).map_err(broken)?;
        }
        Ok(())
    }
}
