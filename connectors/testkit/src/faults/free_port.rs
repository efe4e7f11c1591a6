//! Ports for servers that are killed and started again.

use std::fs;
use std::hash::{BuildHasher as _, RandomState};
use std::net::{Ipv4Addr, TcpListener};

use crate::faults::FaultError;

/// The lowest port. Lower ports belong to well-known services.
const FIRST_PORT: u16 = 10_000;

/// The first port that the system assigns, by default.
const USUAL_END: u16 = 32_768;

/// The number of attempts: ports of other nodes, and of the few services in this range, are taken.
const PORT_TRIES: usize = 1_000;

/// Returns a port that is free now and that the system assigns to no program by itself.
///
/// A server that is killed and started again needs the same port. If the system could assign this
/// port, another program could get it meanwhile. The server's clients would then talk to that
/// program.
///
/// # Errors
///
/// The system has no port left.
pub fn free_port() -> Result<u16, FaultError> {
    let ports = first_given_away().saturating_sub(FIRST_PORT);
    for number in 0..PORT_TRIES {
        // Other processes search at the same time, so each one tries other ports.
        let random = RandomState::new().hash_one(number);
        let Some(offset) = random.checked_rem(ports.into()) else {
            break;
        };
        let port = FIRST_PORT + u16::try_from(offset).expect("it is below the number of ports");
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return Ok(port);
        }
    }
    // The system assigns all of these ports, or all of them are taken.
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .and_then(|listener| listener.local_addr())
        .map(|address| address.port())
        .map_err(FaultError::io("find a free port"))
}

/// Returns the first port that the system assigns.
fn first_given_away() -> u16 {
    let range = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range");
    let first = range.ok().and_then(|range| {
        let mut ends = range.split_whitespace();
        ends.next()?.parse().ok()
    });
    first.unwrap_or(USUAL_END)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_free_and_nobody_gets_them_by_chance() {
        let ports: Vec<u16> = (0..50).map(|_| free_port().unwrap()).collect();
        for port in &ports {
            assert!((FIRST_PORT..first_given_away()).contains(port), "{port}");
            TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).unwrap();
        }
        let mut different = ports;
        different.sort_unstable();
        different.dedup();
        assert!(different.len() > 40, "{different:?}");
    }
}
