//! Checks that need a connection. They send nothing and take nothing.

use std::net::{TcpStream, ToSocketAddrs as _};
use std::time::{Duration, Instant};

use baler_common::transport::uri::Uri;
use baler_common::transport::{ChunkReader, RetryClass, TransportError};

use super::End;
use super::finding::Findings;
use super::settings::check_sizes;
use crate::args::ValidateArgs;
use crate::endpoint::{self, Writer};

/// How long one call of a reader waits.
const TICK: Duration = Duration::from_millis(50);

/// Opens the writer and closes it again.
pub(super) fn writer(end: &End, writer: Writer, args: &ValidateArgs, findings: &mut Findings) {
    if reachable(end, args, findings) {
        let mut writer = writer.writer;
        let started = Instant::now();
        let by = started + args.timeout;
        match writer.reopen(by) {
            Ok(()) => {
                let message = format!("connected in {} ms", started.elapsed().as_millis());
                findings.ok(&end.named, message);
                let origin = "reported when it connected";
                check_sizes(&end.named, args, writer.capability(), origin, findings);
            }
            Err(error) => refused(end, &error, findings),
        }
        let closed = writer.close(Instant::now() + args.timeout);
        if let Some(error) = closed.error {
            let message = format!("it did not close well: {error}");
            let fix = "the connection may be cut by something in between";
            findings.warn(&end.named, message, fix);
        }
    }
}

/// Opens the reader, takes nothing, and closes it again.
pub(super) fn reader(end: &End, args: &ValidateArgs, findings: &mut Findings) {
    if listens(&end.uri) || reachable(end, args, findings) {
        let started = Instant::now();
        match endpoint::open_reader(&end.uri, false) {
            Err(failure) => findings.failed(&end.named, failure.message, "see what it names"),
            Ok(open) => {
                let (reader, error) = wait(open.reader, started + args.timeout);
                match error {
                    Some(error) => refused(end, &error, findings),
                    None => {
                        let what = match open.listens_on {
                            Some(address) => format!("can listen on {address}"),
                            // A Unix socket has no address.
                            None if listens(&end.uri) => "can listen there".to_owned(),
                            None => format!("connected in {} ms", started.elapsed().as_millis()),
                        };
                        findings.ok(&end.named, what);
                    }
                }
                reader.close(Instant::now() + args.timeout);
            }
        }
    }
}

/// Waits until the reader reports a connection or an error.
fn wait(
    mut reader: Box<dyn ChunkReader>,
    by: Instant,
) -> (Box<dyn ChunkReader>, Option<TransportError>) {
    reader.set_demand(0);
    let mut last = None;
    loop {
        match reader.receive(Instant::now() + TICK) {
            Ok(_) => {}
            Err(error) if error.is_retryable() => last = Some(error),
            Err(error) => return (reader, Some(error)),
        }
        let connected = reader.stats().connected;
        tracing::trace!(?connected, "asked the reader for its connection");
        match connected {
            Some(true) => return (reader, None),
            // A medium without connections reports no state, so there is nothing to wait for.
            None if last.is_none() => return (reader, None),
            _ if Instant::now() >= by => {
                let (class, late) = (RetryClass::Retry, "no answer in time");
                let late = || TransportError::new("connect to", "the endpoint", class, late);
                return (reader, Some(last.unwrap_or_else(late)));
            }
            _ => {}
        }
    }
}

fn refused(end: &End, error: &TransportError, findings: &mut Findings) {
    let fix = if error.is_retryable() {
        "trying again may help: see whether the other side runs and answers"
    } else {
        "trying again cannot help: correct the URI or the other side"
    };
    findings.failed(&end.named, error.to_string(), fix);
}

/// Whether a host of the URI accepts connections. Adds a finding for each host.
fn reachable(end: &End, args: &ValidateArgs, findings: &mut Findings) -> bool {
    let Ok(uri) = Uri::parse(&end.uri) else {
        return true;
    };
    let default = match uri.scheme() {
        "amqp" => 5_672,
        "amqps" => 5_671,
        "kafka" => 9_092,
        "tcp" | "tcp+tls" | "kieker+tcp" => 0,
        "otlp" | "otlp+grpc" | "otlp+http" | "otlp+https" | "otlp+tls" => 0,
        _ => return true,
    };
    let mut any = false;
    for host in uri.hosts() {
        let (name, port) = (&*host.name, host.port.unwrap_or(default));
        let addresses = match (name, port).to_socket_addrs() {
            Ok(addresses) => addresses,
            Err(error) => {
                let message = format!("{host}: the name has no address: {error}");
                findings.failed(&end.named, message, "see to the host's name and to DNS");
                continue;
            }
        };
        let started = Instant::now();
        let mut refused = "no address".to_owned();
        let reached = addresses.into_iter().any(|address| {
            let connected = TcpStream::connect_timeout(&address, args.timeout);
            connected
                .map_err(|error| refused = error.to_string())
                .is_ok()
        });
        if reached {
            let ms = started.elapsed().as_millis();
            let message = format!("{name}:{port} takes connections, in {ms} ms");
            findings.ok(&end.named, message);
        } else {
            let message = format!("{name}:{port} takes no connection: {refused}");
            let fix = "see whether the other side runs, and the port and firewalls in between";
            findings.failed(&end.named, message, fix);
        }
        any |= reached;
    }
    any || uri.hosts().is_empty()
}

/// Whether the source listens for senders.
fn listens(uri: &str) -> bool {
    [
        "tcp:",
        "tcp+tls:",
        "kieker+tcp:",
        "kafka+mock:",
        "otlp:",
        "otlp+grpc:",
        "otlp+http:",
        "otlp+https:",
        "otlp+tls:",
        "otlp+unix:",
    ]
    .iter()
    .any(|scheme| uri.starts_with(scheme))
}
