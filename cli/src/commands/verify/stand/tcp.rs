//! `tcp:` on the loopback: producer i sends to consumer i, through a proxy, and through a relay
//! where there has to be a broker.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::process::{Child, Stdio};

use baler_faults::{ProcessGroupGuard, TcpProxy};
use rustix::process::Signal;

use super::{Harm, Stand, broken};
use crate::args::{FaultChoice, VerifyArgs};
use crate::commands::verify::process::{program, signal};
use crate::exit::Failure;

const FAULTS: &[FaultChoice] = &[
    FaultChoice::BrokerDownAtStart,
    FaultChoice::BrokerRestart,
    FaultChoice::BrokerKill,
    FaultChoice::Stall,
    FaultChoice::HalfOpen,
    FaultChoice::Reset,
    FaultChoice::SlowLink,
];

/// Settings of both ends: what does not answer is given up soon.
const SETTINGS: &str = "heartbeat=500ms&connect_timeout=2s";

/// Pairs of a producer and a consumer.
#[derive(Debug)]
pub(super) struct Tcp {
    proxies: Vec<TcpProxy>,
    consumers: Vec<SocketAddr>,
    relays: Vec<Relay>,
}

/// A relay between a proxy and a consumer.
#[derive(Debug)]
struct Relay {
    listens_on: SocketAddr,
    sends_to: SocketAddr,
    process: Option<Child>,
    /// Ends it when this process is killed.
    guard: ProcessGroupGuard,
}

impl Tcp {
    pub(super) fn new(pairs: u16, with_relays: bool) -> Result<Self, Failure> {
        let mut stand = Self {
            proxies: Vec::new(),
            consumers: Vec::new(),
            relays: Vec::new(),
        };
        for _ in 0..pairs {
            let proxy = TcpProxy::start().map_err(broken)?;
            let consumer = free_address()?;
            let mut target = consumer;
            if with_relays {
                target = free_address()?;
                stand.relays.push(Relay {
                    listens_on: target,
                    sends_to: consumer,
                    process: None,
                    guard: ProcessGroupGuard::new(None).map_err(broken)?,
                });
            }
            proxy.set_target(Some(target));
            stand.proxies.push(proxy);
            stand.consumers.push(consumer);
        }
        Ok(stand)
    }
}

/// A port of the loopback that is free now.
fn free_address() -> Result<SocketAddr, Failure> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .and_then(|listener| listener.local_addr())
        .map_err(broken)
}

impl Stand for Tcp {
    fn faults(&self) -> &'static [FaultChoice] {
        FAULTS
    }

    fn producer_uri(&self, producer: u16) -> String {
        let proxy = self.proxies.get(usize::from(producer));
        let address = proxy.map_or_else(String::new, |proxy| proxy.address().to_string());
        format!("tcp://{address}?{SETTINGS}")
    }

    fn consumer_uri(&self, consumer: u16) -> String {
        let address = self.consumers.get(usize::from(consumer));
        let address = address.map_or_else(String::new, ToString::to_string);
        format!("tcp://{address}?{SETTINGS}")
    }

    /// Each reads only what the producer with its number writes.
    fn consumers(&self, args: &VerifyArgs) -> u16 {
        args.producers
    }

    fn network(&self, harm: Harm) {
        self.proxies.iter().for_each(|proxy| harm.to(proxy));
    }

    fn start(&mut self) -> Result<(), Failure> {
        for relay in &mut self.relays {
            let mut command = program()?;
            let from = format!("tcp://{}?{SETTINGS}", relay.listens_on);
            let to = format!("tcp://{}?{SETTINGS}", relay.sends_to);
            command.args(["relay", "--quiet", "--from", &from, "--to", &to]);
            command
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null());
            let process = relay.process.insert(command.spawn().map_err(broken)?);
            // It leads a process group of its own.
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
