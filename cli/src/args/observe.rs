//! Where a running command shows its figures.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::values;

/// Where a running command shows its figures.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Observability")]
pub(crate) struct ObserveArgs {
    /// Serve /metrics (Prometheus), /livez, /readyz and /tap at this port of the loopback, or at
    /// address:port
    #[arg(long, value_name = "ADDR", env = "BALER_METRICS", value_parser = values::listen_address)]
    pub(crate) metrics: Option<SocketAddr>,
    /// Write the address of --metrics to this file; with port 0 the system chooses a free port
    #[arg(long, value_name = "FILE")]
    pub(crate) metrics_port_file: Option<PathBuf>,
    /// Write the last figures to this file at the end, as node_exporter's textfile collector reads
    /// them
    #[arg(long, value_name = "FILE", env = "BALER_METRICS_FILE")]
    pub(crate) metrics_file: Option<PathBuf>,
    /// Let /tap show records at an address that is not loopback, to clients that send the token in
    /// this file (`tap --token-file`)
    #[arg(long, value_name = "FILE", env = "BALER_METRICS_TAP")]
    pub(crate) metrics_tap: Option<PathBuf>,
    /// /readyz fails when the oldest chunk has been unconfirmed for this long
    #[arg(
        long,
        value_name = "DURATION",
        default_value = "30s",
        env = "BALER_READY_AGE",
        value_parser = values::duration
    )]
    pub(crate) ready_age: Duration,
}
