//! The socket at which a reader listens.

use std::fs;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::os::unix::fs::FileTypeExt as _;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};

use tokio::net::{TcpListener, UnixListener};

use crate::client::Stream;
use crate::config::Place;

/// A socket by TCP, or a Unix socket.
pub(super) enum Socket {
    Tcp(TcpListener),
    Unix(SocketFile),
}

impl Socket {
    /// Listens. Must be called in the context of the runtime that accepts connections.
    pub(super) fn bind(place: &Place) -> io::Result<Self> {
        match place {
            Place::Tcp(host) => {
                let port = host.port.unwrap_or(0);
                let listener = std::net::TcpListener::bind((&*host.name, port))?;
                listener.set_nonblocking(true)?;
                TcpListener::from_std(listener).map(Self::Tcp)
            }
            Place::Unix(path) => SocketFile::bind(path).map(Self::Unix),
        }
    }

    /// Returns the address; a Unix socket has none.
    pub(super) fn local_addr(&self) -> io::Result<Option<SocketAddr>> {
        match self {
            Self::Tcp(listener) => listener.local_addr().map(Some),
            Self::Unix(_) => Ok(None),
        }
    }

    pub(super) async fn accept(&self) -> io::Result<Box<dyn Stream>> {
        Ok(match self {
            Self::Tcp(listener) => {
                let (stream, _) = listener.accept().await?;
                // An answer does not wait until the sender has confirmed the one before.
                stream.set_nodelay(true).ok();
                Box::new(stream)
            }
            Self::Unix(file) => Box::new(file.listener.accept().await?.0),
        })
    }
}

/// A Unix socket with its file, which is removed when this value is dropped.
pub(super) struct SocketFile {
    listener: UnixListener,
    path: PathBuf,
}

impl SocketFile {
    /// Listens at a path. The file of a socket at which nobody listens any more is replaced.
    fn bind(path: &Path) -> io::Result<Self> {
        let listener = UnixListener::bind(path).or_else(|error| {
            if error.kind() != ErrorKind::AddrInUse {
                return Err(error);
            }
            if !fs::symlink_metadata(path)?.file_type().is_socket() {
                let message = "the file is no socket; move it away, or choose another path";
                return Err(io::Error::new(ErrorKind::AlreadyExists, message));
            }
            // A socket of this type connects to no listener, so the attempt neither waits for a
            // listener nor disturbs it. Only without one it is refused.
            let probe = UnixDatagram::unbound()?.connect(path);
            if !probe.is_err_and(|it| it.kind() == ErrorKind::ConnectionRefused) {
                let message = "another process listens there, or another reader of this one";
                return Err(io::Error::new(ErrorKind::AddrInUse, message));
            }
            fs::remove_file(path)?;
            UnixListener::bind(path)
        })?;
        Ok(Self {
            listener,
            path: path.to_owned(),
        })
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        // Before the socket is closed: nobody replaces the file of one that is open, so it is this one.
        fs::remove_file(&self.path).ok();
    }
}
