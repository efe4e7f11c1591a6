//! The bytes that a process sends and receives over TCP, counted by the kernel.
//!
//! Linux counts the bytes of each connection in `struct tcp_info`, and `NETLINK_SOCK_DIAG` returns
//! them (sock_diag(7), as `ss -i` does). The counts are exact for every client library, and neither
//! the process nor its data is touched. A proxy would add a hop, and the libraries' own counters
//! differ in meaning.

use std::collections::BTreeMap;
use std::fs;
use std::os::fd::OwnedFd;

use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use rustix::net::{netlink, recv, send, socket_with};

use crate::harness::Failure;

/// Counts the bytes of TCP payload that one process sends and receives.
///
/// Retransmissions count. The headers below TCP's payload and the handshakes do not. A connection
/// that ends between two calls of [`look`](Self::look) counts with its bytes at the last one.
#[derive(Debug)]
pub struct WireCounter {
    asking: OwnedFd,
    pid: u32,
    /// Indexed by the socket's inode.
    connections: BTreeMap<u32, u64>,
}

/// `SOCK_DIAG_BY_FAMILY`
const BY_FAMILY: u16 = 20;
/// `NLM_F_REQUEST | NLM_F_DUMP`
const DUMP: u16 = 0x301;
/// `NLMSG_ERROR`
const ERROR: u16 = 2;
/// `NLMSG_DONE`
const DONE: u16 = 3;
const IPPROTO_TCP: u8 = 6;
/// `INET_DIAG_INFO`
const INFO: u16 = 2;
const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;
/// `struct nlmsghdr`
const MESSAGE_HEADER: usize = 16;
/// `struct inet_diag_msg`
const DIAG_MESSAGE: usize = 72;
/// The position of `idiag_inode` in it.
const INODE: usize = 68;

impl WireCounter {
    /// Creates a counter for this process.
    ///
    /// # Errors
    ///
    /// The kernel does not answer.
    pub fn of(pid: u32) -> Result<Self, Failure> {
        let asking = socket_with(
            AddressFamily::NETLINK,
            SocketType::DGRAM,
            SocketFlags::CLOEXEC,
            Some(netlink::SOCK_DIAG),
        );
        let asking = asking.map_err(Failure::cannot("count bytes"))?;
        Ok(Self {
            asking,
            pid,
            connections: BTreeMap::new(),
        })
    }

    /// Returns the bytes that the process has sent and received so far.
    ///
    /// # Errors
    ///
    /// The process has ended, or the kernel does not answer.
    pub fn look(&mut self) -> Result<u64, Failure> {
        let own = sockets(self.pid)?;
        for family in [AF_INET, AF_INET6] {
            for (inode, bytes) in ask(&self.asking, family)? {
                if own.contains(&inode) {
                    self.connections.insert(inode, bytes);
                }
            }
        }
        Ok(self.connections.values().sum())
    }
}

/// The inodes of a process's sockets.
fn sockets(pid: u32) -> Result<Vec<u32>, Failure> {
    let mut inodes = Vec::new();
    let entries = fs::read_dir(format!("/proc/{pid}/fd"));
    for entry in entries.map_err(Failure::cannot("count bytes"))?.flatten() {
        // A socket that was closed meanwhile does not count.
        let Ok(target) = fs::read_link(entry.path()) else {
            continue;
        };
        let target = target.to_string_lossy();
        let inode = target
            .strip_prefix("socket:[")
            .and_then(|rest| rest.strip_suffix(']'));
        inodes.extend(inode.and_then(|inode| inode.parse::<u32>().ok()));
    }
    Ok(inodes)
}

/// `struct nlmsghdr` and `struct inet_diag_req_v2`: all TCP sockets of a family, in any state.
fn question(family: u8) -> Vec<u8> {
    let mut message = Vec::with_capacity(72);
    message.extend(72_u32.to_ne_bytes());
    message.extend(BY_FAMILY.to_ne_bytes());
    message.extend(DUMP.to_ne_bytes());
    // Sequence and port.
    message.extend([0; 8]);
    message.extend([family, IPPROTO_TCP, 1 << (INFO - 1), 0]);
    message.extend(u32::MAX.to_ne_bytes());
    // No particular socket.
    message.resize(72, 0);
    message
}

fn ask(asking: &OwnedFd, family: u8) -> Result<Vec<(u32, u64)>, Failure> {
    let sent = send(asking, &question(family), SendFlags::empty());
    sent.map_err(Failure::cannot("count bytes"))?;
    let mut found = Vec::new();
    let mut buffer = vec![0_u8; 64 << 10];
    loop {
        let received = recv(asking, &mut buffer[..], RecvFlags::empty());
        let (length, _) = received.map_err(Failure::cannot("count bytes"))?;
        let mut rest = &buffer[..length];
        if rest.is_empty() {
            return Err(Failure::new("sock_diag does not answer"));
        }
        while let Some((kind, body, after)) = message(rest) {
            match kind {
                DONE => return Ok(found),
                ERROR => return Err(Failure::new("sock_diag refuses the question")),
                _ => found.extend(connection(body)),
            }
            rest = after;
        }
    }
}

/// The first netlink message: its type, its body and the bytes after it.
fn message(bytes: &[u8]) -> Option<(u16, &[u8], &[u8])> {
    let length = usize::try_from(u32_at(bytes, 0)?).ok()?;
    let kind = u16_at(bytes, 4)?;
    let body = bytes.get(MESSAGE_HEADER..length)?;
    // The last message may end without padding.
    let after = &bytes[length.next_multiple_of(4).min(bytes.len())..];
    Some((kind, body, after))
}

/// The inode of a `struct inet_diag_msg` and the bytes in the `struct tcp_info` after it.
fn connection(body: &[u8]) -> Option<(u32, u64)> {
    let inode = u32_at(body, INODE)?;
    let mut attributes = body.get(DIAG_MESSAGE..)?;
    loop {
        let length = usize::from(u16_at(attributes, 0)?);
        let value = attributes.get(4..length)?;
        if u16_at(attributes, 2)? == INFO {
            return Some((inode, bytes(value)?));
        }
        attributes = attributes.get(length.next_multiple_of(4)..)?;
    }
}

/// Returns the sent and received bytes of a `struct tcp_info` (linux/tcp.h): `tcpi_bytes_sent` and
/// `tcpi_bytes_received`, which have kept their positions since Linux 4.19.
fn bytes(info: &[u8]) -> Option<u64> {
    let at = |position| at(info, position).map(u64::from_ne_bytes);
    Some(at(200)? + at(128)?)
}

fn at<const N: usize>(bytes: &[u8], position: usize) -> Option<[u8; N]> {
    bytes.get(position..)?.first_chunk().copied()
}

fn u16_at(bytes: &[u8], position: usize) -> Option<u16> {
    at(bytes, position).map(u16::from_ne_bytes)
}

fn u32_at(bytes: &[u8], position: usize) -> Option<u32> {
    at(bytes, position).map(u32::from_ne_bytes)
}

#[cfg(test)]
mod tests;
