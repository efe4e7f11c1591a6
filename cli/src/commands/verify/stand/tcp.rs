//! `tcp:` on the loopback: producer i sends to consumer i, through a proxy. Faults of a broker need
//! a relay as well.

use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Child, Stdio};

use baler_connector_testkit::faults::{ProcessGroupGuard, TcpProxy, free_port};
use rustix::process::Signal;

use super::{Harm, Medium, Stand, broken, faults_of_broker};
use crate::args::{FaultChoice, VerifyArgs};
use crate::commands::verify::fleet::{program, signal};
use crate::exit::Failure;

/// Settings of both ends, which soon give up a peer that does not answer.
const SETTINGS: &str = "heartbeat=500ms&connect_timeout=2s";

/// The proxies and relays between producers and consumers.
#[derive(Default)]
struct Tcp {
    proxies: Vec<TcpProxy>,
    relays: Vec<Relay>,
}

/// A relay between a proxy and a consumer.
struct Relay {
    listens_on: SocketAddr,
    sends_to: SocketAddr,
    process: Option<Child>,
    /// Ends the relay when this process is killed.
    guard: ProcessGroupGuard,
}

/// Sets up pairs of a producer and a consumer, each with a proxy in between.
pub(super) fn stand(args: &VerifyArgs) -> Result<Stand, Failure> {
    use FaultChoice::{All, BrokerDownAtStart, BrokerKill, BrokerRestart};

    let mut faults = args.faults.iter();
    let has_broker =
        faults.any(|it| matches!(it, All | BrokerDownAtStart | BrokerKill | BrokerRestart));
    let mut medium = Tcp::default();
    let (mut producer_uris, mut consumer_uris) = (Vec::new(), Vec::new());
    for _ in 0..args.producers {
        let proxy = TcpProxy::start().map_err(broken)?;
        let consumer = free_address()?;
        let mut target = consumer;
        if has_broker {
            target = free_address()?;
            medium.relays.push(Relay {
                listens_on: target,
                sends_to: consumer,
                process: None,
                guard: ProcessGroupGuard::new(None).map_err(broken)?,
            });
        }
        proxy.set_target(Some(target));
        producer_uris.push(uri(proxy.address()));
        consumer_uris.push(uri(consumer));
        medium.proxies.push(proxy);
    }
    Ok(Stand {
        producer_uris,
        consumer_uris,
        faults: faults_of_broker(&[]),
        orders_competitors: true,
        window: u64::MAX,
        folders: None,
        medium: Some(Box::new(medium)),
    })
}

fn uri(address: SocketAddr) -> String {
    format!("tcp://{address}?{SETTINGS}")
}

/// Returns a loopback address that stays free while its consumer or relay restarts.
fn free_address() -> Result<SocketAddr, Failure> {
    let port = free_port().map_err(broken)?;
    Ok((Ipv4Addr::LOCALHOST, port).into())
}

impl Medium for Tcp {
    fn network(&self, harm: Harm) {
        self.proxies.iter().for_each(|proxy| harm.to(proxy));
    }

    fn start(&mut self) -> Result<(), Failure> {
        for relay in &mut self.relays {
            let mut command = program()?;
            let (from, to) = (uri(relay.listens_on), uri(relay.sends_to));
            command.args(["relay", "--quiet", "--from", &from, "--to", &to]);
            command
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null());
            let process = relay.process.insert(command.spawn().map_err(broken)?);
            // The relay leads a process group of its own.
            relay.guard.hold(process.id()).map_err(broken)?;
        }
        Ok(())
    }

    fn end(&mut self, kill: bool) -> Result<(), Failure> {
        for relay in &mut self.relays {
            if let Some(process) = &relay.process {
                signal(process, if kill { Signal::KILL } else { Signal::TERM });
            }
        }
        for relay in &mut self.relays {
            if let Some(mut process) = relay.process.take() {
                process.wait().map_err(broken)?;
                relay.guard.free().map_err(broken)?;
            }
        }
        Ok(())
    }
}

impl Drop for Tcp {
    fn drop(&mut self) {
        self.end(true).ok();
    }
}
