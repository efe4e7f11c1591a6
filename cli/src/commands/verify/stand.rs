//! Endpoints under test, each with the faults that it can have.

#[cfg(all(feature = "faults", feature = "kafka"))]
mod kafka;
#[cfg(all(feature = "faults", feature = "amqp"))]
mod rabbitmq;
#[cfg(feature = "faults")]
mod tcp;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

#[cfg(feature = "faults")]
use baler_connector_testkit::faults::{ProcessGroupGuard, TcpProxy};

use crate::args::{FaultChoice, VerifyArgs};
use crate::endpoint;
use crate::exit::{Code, Failure};
use crate::random::Random;

/// How long connecting to the user's endpoint may take.
const REACH: Duration = Duration::from_secs(10);

/// An endpoint under test.
pub(super) struct Stand {
    /// The URIs that producers send to.
    pub(super) producer_uris: Vec<String>,
    /// The URIs that consumers read from.
    pub(super) consumer_uris: Vec<String>,
    /// The faults that it can have, besides faults of processes.
    pub(super) faults: Vec<FaultChoice>,
    /// Whether each of several consumers gets its records in order. Consumers of one queue do not:
    /// when a connection ends, its chunks go to another consumer.
    pub(super) orders_competitors: bool,
    /// The maximum number of records in flight.
    pub(super) window: u64,
    /// The folder that has a numbered folder of segments for each producer.
    pub(super) folders: Option<Scratch>,
    /// The network and broker that can be broken, if any.
    pub(super) medium: Option<Box<dyn Medium>>,
}

/// A network and a broker that can be broken.
pub(super) trait Medium: Send {
    /// Harms the network that all connections go through.
    fn network(&self, harm: Harm);

    /// Starts the broker with the state that it had at its end.
    fn start(&mut self) -> Result<(), Failure>;

    /// Ends the broker, cleanly or by a kill.
    fn end(&mut self, kill: bool) -> Result<(), Failure>;

    /// Makes slow preparations before a fault, so that the fault meets records in flight.
    fn prepare(&mut self, _fault: FaultChoice) -> Result<(), Failure> {
        Ok(())
    }

    /// Begins a fault that only this medium has. Returns a description of it.
    fn begin(&mut self, fault: FaultChoice, _random: &mut Random) -> Result<String, Failure> {
        Err(broken(format_args!("{} is not known here", fault.name())))
    }

    /// Ends a fault that was begun.
    fn heal(&mut self, _fault: FaultChoice) -> Result<(), Failure> {
        Ok(())
    }
}

impl Stand {
    /// Returns the number of consumers, without consumers that join for a while.
    pub(super) fn consumers(&self) -> u16 {
        u16::try_from(self.consumer_uris.len()).expect("consumers are numbered with 16 bits")
    }

    /// Sets up folders in the temporary folder: consumer i follows the folder of producer i.
    fn of_folders(args: &VerifyArgs) -> Result<Self, Failure> {
        let scratch = Scratch::new()?;
        let uris = |settings: &str| {
            let folder = scratch.path().display();
            let uri = |number| format!("file://{folder}/{number}?{settings}");
            (0..args.producers).map(uri).collect()
        };
        Ok(Self {
            producer_uris: uris("segment_bytes=8MiB"),
            consumer_uris: uris("consumer=verify&commit_interval=200ms"),
            faults: vec![FaultChoice::DiskFull, FaultChoice::TornWrite],
            orders_competitors: true,
            window: u64::MAX,
            folders: Some(scratch),
            medium: None,
        })
    }

    /// Returns the user's own endpoint, whose broker must not be harmed.
    fn of_user(args: &VerifyArgs) -> Result<Self, Failure> {
        let mut writer = endpoint::writer(&args.to)?.writer;
        // Only one process can listen on an address, or follow a folder.
        let has_one_reader = args.to.starts_with("tcp") || args.to.starts_with("file:");
        if !has_one_reader {
            // An endpoint that does not answer is not a broken promise, so it is reported first.
            let reached = writer.reopen(Instant::now() + REACH);
            writer.close(Instant::now() + REACH);
            reached?;
        }
        let (consumers, faults) = match has_one_reader {
            true => (1, Vec::new()),
            false => (args.consumers.into(), vec![FaultChoice::Rebalance]),
        };
        Ok(Self {
            producer_uris: vec![args.to.clone(); args.producers.into()],
            consumer_uris: vec![args.to.clone(); consumers],
            faults,
            orders_competitors: !args.to.starts_with("amqp"),
            window: u64::MAX,
            folders: None,
            medium: None,
        })
    }
}

/// A harm to a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Harm {
    /// Connections stand still for good; new connections work.
    Abandon,
    /// Each connection is cut after this number of bytes.
    CutAfter(u64),
    /// Nothing passes while it is true; `false` ends it.
    Frozen(bool),
    /// Each piece is late, and each connection passes this number of bytes a second; `None` ends
    /// it.
    Slow(Option<u64>),
}

/// Returns the faults of a broker and its network, and the given faults of one medium.
#[cfg(feature = "faults")]
fn faults_of_broker(of_medium: &[FaultChoice]) -> Vec<FaultChoice> {
    let of_all = [
        FaultChoice::BrokerDownAtStart,
        FaultChoice::BrokerRestart,
        FaultChoice::BrokerKill,
        FaultChoice::Stall,
        FaultChoice::HalfOpen,
        FaultChoice::Reset,
        FaultChoice::SlowLink,
    ];
    [&of_all, of_medium].concat()
}

/// The delay of each piece on a slow network.
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
                proxy.set_delay(rate.map_or(Duration::ZERO, |_| LATE));
                proxy.set_bytes_per_second(rate);
            }
        }
    }
}

/// A folder in the temporary folder, removed at the end. With the feature `faults` it is removed even
/// if this process is killed.
#[derive(Debug)]
pub(super) struct Scratch {
    path: PathBuf,
    #[cfg(feature = "faults")]
    _guard: ProcessGroupGuard,
}

impl Scratch {
    /// Creates a folder.
    ///
    /// # Errors
    ///
    /// The folder cannot be created.
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

    /// Returns the path of the folder.
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
/// The URI is wrong, or a program that the endpoint needs is missing.
pub(super) fn stand(args: &VerifyArgs) -> Result<Stand, Failure> {
    let (scheme, rest) = args.to.split_once(':').unwrap_or((&args.to, ""));
    match (scheme, rest) {
        ("file", "") => Stand::of_folders(args),
        #[cfg(feature = "faults")]
        ("tcp", "") => tcp::stand(args),
        #[cfg(all(feature = "faults", feature = "kafka"))]
        ("kafka+mock", _) => kafka::stand(args, rest),
        #[cfg(all(feature = "faults", feature = "amqp"))]
        ("amqp+private", _) => rabbitmq::stand(args, rest),
        #[cfg(not(feature = "faults"))]
        ("tcp", "") | ("amqp+private" | "kafka+mock", _) => Err(Failure::configuration(format!(
            "{scheme}: needs the feature faults, which this build lacks; verify an endpoint of \
                 yours, or build the program with it: cargo build --release --package baler-cli \
                 --features faults"
        ))),
        ("null", _) => Err(Failure::configuration(
            "null: keeps nothing, so there is nothing to verify",
        )),
        _ => Stand::of_user(args),
    }
}

/// Returns the failure of a tool that injects faults.
pub(super) fn broken(error: impl fmt::Display) -> Failure {
    Failure::new(Code::Unavailable, error.to_string())
}

/// Splits the part of a stand's URI after the scheme into a name and settings. The name of the
/// queue or topic is `verify` if it is missing. Missing settings come from `defaults`.
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
