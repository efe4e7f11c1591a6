//! Endpoints under test, each with the faults that it can have.

mod file;
#[cfg(all(feature = "faults", feature = "kafka"))]
mod kafka;
mod own;
#[cfg(all(feature = "faults", feature = "amqp"))]
mod rabbitmq;
#[cfg(feature = "faults")]
mod tcp;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
#[cfg(feature = "faults")]
use std::time::Duration;

#[cfg(feature = "faults")]
use baler_faults::{ProcessGroupGuard, TcpProxy};

use super::random::Random;
use crate::args::{FaultChoice, VerifyArgs};
use crate::exit::{Code, Failure};

/// An endpoint under test.
pub(super) trait Stand {
    /// The faults that it can have, besides those of processes.
    fn faults(&self) -> &'static [FaultChoice];

    /// Where a producer sends to.
    fn producer_uri(&self, producer: u16) -> String;

    /// Where a consumer reads from.
    fn consumer_uri(&self, consumer: u16) -> String;

    /// How many consumers it has: as many as asked for, unless it says otherwise.
    fn consumers(&self, args: &VerifyArgs) -> u16 {
        args.consumers
    }

    /// Whether several consumers get what they get in order: those of one queue do not, since what
    /// one of them had is given to another when its connection ends.
    fn orders_competitors(&self) -> bool {
        true
    }

    /// How many records may be on their way.
    fn window(&self) -> u64 {
        u64::MAX
    }

    /// Harms the network that all connections go through.
    fn network(&self, _harm: Harm) {}

    /// Starts the broker, as it was left.
    fn start(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    /// Does what takes its time before a fault, so that the fault meets records on their way.
    fn prepare(&mut self, _fault: FaultChoice) -> Result<(), Failure> {
        Ok(())
    }

    /// Ends the broker, in good order or not.
    fn end(&mut self, _kill: bool) -> Result<(), Failure> {
        Ok(())
    }

    /// Begins a fault of this endpoint alone; says what was done.
    fn begin(&mut self, fault: FaultChoice, _random: &mut Random) -> Result<String, Failure> {
        Err(broken(format_args!("{} is not known here", fault.name())))
    }

    /// Ends what was begun.
    fn heal(&mut self, _fault: FaultChoice) -> Result<(), Failure> {
        Ok(())
    }

    /// The folder that a producer writes segments to.
    fn folder(&self, _producer: usize) -> Option<PathBuf> {
        None
    }
}

/// What is done to a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Harm {
    /// Connections stand still for good, new ones work.
    Abandon,
    /// Connections are cut after so many bytes.
    CutAfter(u64),
    /// Nothing passes, or everything does again.
    Frozen(bool),
    /// Each piece is late, and each connection has so many bytes a second.
    Slow(u64),
    /// It is as fast as ever.
    Fast,
}

/// How late each piece is on a slow network.
#[cfg(feature = "faults")]
const LATE: Duration = Duration::from_millis(5);

#[cfg(feature = "faults")]
impl Harm {
    fn to(self, proxy: &TcpProxy) {
        match self {
            Self::Abandon => proxy.abandon(),
            Self::CutAfter(bytes) => proxy.cut_after(bytes),
            Self::Frozen(frozen) => proxy.set_frozen(frozen),
            Self::Slow(rate) => {
                proxy.set_delay(LATE);
                proxy.set_bytes_per_second(Some(rate));
            }
            Self::Fast => {
                proxy.set_delay(Duration::ZERO);
                proxy.set_bytes_per_second(None);
            }
        }
    }
}

/// Faults of processes, which need no control over the endpoint.
pub(super) const ANYWHERE: &[FaultChoice] = &[
    FaultChoice::ProducerTerm,
    FaultChoice::ProducerKill,
    FaultChoice::ConsumerTerm,
    FaultChoice::ConsumerKill,
    FaultChoice::ConsumerSlow,
    FaultChoice::Poison,
    FaultChoice::Overflow,
];

/// Faults of disks, where producers have a spool.
pub(super) const WITH_SPOOL: &[FaultChoice] = &[FaultChoice::DiskFull, FaultChoice::TornWrite];

/// A folder in the temporary folder, removed at the end. With the feature `faults` it is removed even
/// if this process is killed.
#[derive(Debug)]
pub(super) struct Scratch {
    path: PathBuf,
    #[cfg(feature = "faults")]
    _guard: ProcessGroupGuard,
}

impl Scratch {
    /// Makes a folder.
    ///
    /// # Errors
    ///
    /// It cannot be made.
    pub(super) fn new() -> Result<Self, Failure> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let name = format!("baler-verify-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).map_err(broken)?;
        Ok(Self {
            #[cfg(feature = "faults")]
            _guard: ProcessGroupGuard::new(Some(&folder)).map_err(broken)?,
            path: folder,
        })
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.path).ok();
    }
}

/// Sets up the endpoint that the flags name.
///
/// # Errors
///
/// The URI is wrong, or what it needs is not there.
pub(super) fn stand(args: &VerifyArgs) -> Result<Box<dyn Stand>, Failure> {
    let (scheme, rest) = args.to.split_once(':').unwrap_or((&args.to, ""));
    Ok(match (scheme, rest) {
        #[cfg(feature = "faults")]
        ("tcp", "") => Box::new(tcp::Tcp::new(args.producers, wants_broker(args))?),
        ("file", "") => Box::new(file::Files::new()?),
        #[cfg(all(feature = "faults", feature = "kafka"))]
        ("kafka+mock", _) => Box::new(kafka::Kafka::new(rest)?),
        #[cfg(all(feature = "faults", feature = "amqp"))]
        ("amqp+private", _) => Box::new(rabbitmq::Rabbit::new(rest)?),
        #[cfg(not(feature = "faults"))]
        ("tcp", "") | ("amqp+private" | "kafka+mock", _) => {
            return Err(Failure::configuration(format!(
                "{scheme}: needs the feature faults, which this build lacks; verify an endpoint of \
                 yours, or build the program with it: cargo build --release --package baler-cli \
                 --features faults"
            )));
        }
        ("null", _) => {
            return Err(Failure::configuration(
                "null: keeps nothing, so there is nothing to verify",
            ));
        }
        _ => Box::new(own::Own::new(&args.to)?),
    })
}

/// Whether the endpoint needs a broker that can end.
#[cfg(feature = "faults")]
fn wants_broker(args: &VerifyArgs) -> bool {
    use FaultChoice::{All, BrokerDownAtStart, BrokerKill, BrokerRestart};

    let mut faults = args.faults.iter();
    faults.any(|it| matches!(it, All | BrokerDownAtStart | BrokerKill | BrokerRestart))
}

/// Something that faults are made with failed.
pub(super) fn broken(error: impl fmt::Display) -> Failure {
    Failure::new(Code::Unavailable, error.to_string())
}

/// What follows the scheme of a stand's own URI: the name of a queue or topic, `verify` where there
/// is none, and settings, those of `defaults` where they are not given.
#[cfg(all(feature = "faults", any(feature = "amqp", feature = "kafka")))]
fn name_and_settings(rest: &str, defaults: &[(&str, &str)]) -> (String, String) {
    let (name, given) = rest.split_once('?').unwrap_or((rest, ""));
    let name = if name.is_empty() { "verify" } else { name };
    let given: Vec<_> = given.split('&').filter(|it| !it.is_empty()).collect();
    let mut settings: Vec<String> = given.iter().map(|it| (*it).to_owned()).collect();
    for (name, value) in defaults {
        let is_given = |it: &&str| it.split('=').next() == Some(name);
        if !given.iter().any(is_given) {
            settings.push(format!("{name}={value}"));
        }
    }
    (name.to_owned(), settings.join("&"))
}

#[cfg(all(test, feature = "faults", any(feature = "amqp", feature = "kafka")))]
mod tests {
    use super::*;

    #[test]
    fn settings_that_are_given_come_before_defaults() {
        let defaults = &[("prefetch", "32"), ("heartbeat", "1s")];
        for (rest, name, settings) in [
            ("", "verify", "prefetch=32&heartbeat=1s"),
            ("q", "q", "prefetch=32&heartbeat=1s"),
            ("q?heartbeat=9s", "q", "heartbeat=9s&prefetch=32"),
            (
                "?x_prefetch=1",
                "verify",
                "x_prefetch=1&prefetch=32&heartbeat=1s",
            ),
        ] {
            let expected = (name.to_owned(), settings.to_owned());
            assert_eq!(name_and_settings(rest, defaults), expected, "{rest}");
        }
    }
}
