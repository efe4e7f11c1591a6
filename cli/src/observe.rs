//! The figures of a running command for Prometheus, its health, and its passing chunks.
//!
//! controller, source watches, taps -> [`Observed`] -> server (`/metrics`, `/livez`, `/readyz`,
//! `/tap`) on a thread of its own

mod exposition;
pub(crate) mod metric;
mod observable;
mod observed;
mod receiving;
mod sending;
mod server;
pub(crate) mod tap;
#[cfg(test)]
mod tests;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use observed::Observed;
#[cfg(feature = "kieker")]
pub(crate) use observed::Probes;
pub(crate) use observed::ProbesAccess;
pub(crate) use sending::RelayFigures;
use server::{Server, Service, Taps};

use crate::args::ObserveArgs;
use crate::exit::{Code, Failure};
use crate::output;
use crate::shutdown::Shutdown;

/// What the parts of a running command share: its figures, which are served while it lasts and
/// written to a file at its end, and its shutdown.
pub(crate) struct Observation {
    /// The registry in which the command's parts appear.
    pub(crate) observed: Arc<Observed>,
    pub(crate) shutdown: Shutdown,
    /// Whether only errors are shown.
    pub(crate) quiet: bool,
    server: Option<Server>,
    file: Option<PathBuf>,
}

impl Observation {
    /// Starts the server, if the flags ask for one. From now on, a signal shows how many chunks are
    /// left to drain, unless `quiet`.
    ///
    /// # Errors
    ///
    /// The address of the server cannot be bound.
    pub(crate) fn start(
        args: &ObserveArgs,
        command: &'static str,
        shutdown: &Shutdown,
        quiet: bool,
    ) -> Result<Self, Failure> {
        Self::start_with(args, command, shutdown, quiet, None)
    }

    /// As [`start`](Self::start); the server also lists and switches probes.
    ///
    /// # Errors
    ///
    /// As [`start`](Self::start).
    pub(crate) fn start_with(
        args: &ObserveArgs,
        command: &'static str,
        shutdown: &Shutdown,
        quiet: bool,
        probes: Option<ProbesAccess>,
    ) -> Result<Self, Failure> {
        let observed = Arc::new(Observed::new(command, shutdown, probes));
        if !quiet {
            let holding = Arc::clone(&observed);
            shutdown.drains(move || holding.chunks_left());
        }
        let mut server = None;
        if let Some(address) = args.metrics {
            let service = Service {
                observed: Arc::clone(&observed),
                ready_age: args.ready_age,
                is_local: address.ip().is_loopback(),
                taps: taps(address, args.metrics_tap.as_deref())?,
                tap_patience: server::TAP_PATIENCE,
            };
            let started = Server::start(address, service).map_err(|error| {
                let message = format!("cannot serve metrics at {address}: {error}");
                Failure::new(Code::Unavailable, message)
            })?;
            let address = started.address();
            if !quiet {
                output::say(format_args!("metrics at http://{address}/metrics"));
            }
            if let Some(path) = &args.metrics_port_file {
                output::whole_file(path, &format!("{address}\n"))?;
            }
            server = Some(started);
        }
        Ok(Self {
            observed,
            shutdown: shutdown.clone(),
            quiet,
            server,
            file: args.metrics_file.clone(),
        })
    }

    /// Ends the server and writes the last figures.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub(crate) fn finish(self) -> Result<(), Failure> {
        drop(self.server);
        match &self.file {
            Some(path) => output::whole_file(path, &self.observed.metrics()),
            None => Ok(()),
        }
    }
}

/// Returns the clients that may see records at this address.
fn taps(address: SocketAddr, token_file: Option<&Path>) -> Result<Taps, Failure> {
    Ok(match token_file {
        _ if address.ip().is_loopback() => Taps::Open,
        Some(path) => Taps::Token(authorization(path)?.into()),
        None => Taps::Closed,
    })
}

/// Reads the token in a file. Returns it as the header `Authorization` has it.
///
/// # Errors
///
/// The file cannot be read, or holds no token.
pub(crate) fn authorization(path: &Path) -> Result<String, Failure> {
    let file = path.display();
    let text = std::fs::read_to_string(path).map_err(|error| {
        Failure::configuration(format!("cannot read the token in {file}: {error}"))
    })?;
    let token = text.trim();
    if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(Failure::configuration(format!(
            "{file} holds no token: write one word of printable ASCII characters"
        )));
    }
    Ok(format!("Bearer {token}"))
}
