//! The server's end of TLS, in front of brokers that speak plain text.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection};

use crate::FaultError;

/// Who a proxy says to be, and whom it demands; all of it PEM.
#[derive(Clone)]
pub struct KafkaTls {
    /// The server's certificate, followed by those above it.
    pub certificate: String,
    /// Its key.
    pub key: String,
    /// Who signs clients' certificates; without it none is demanded.
    pub client_ca: Option<String>,
}

impl std::fmt::Debug for KafkaTls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KafkaTls").finish_non_exhaustive()
    }
}

impl KafkaTls {
    pub(super) fn server(&self) -> Result<Arc<ServerConfig>, FaultError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let wrong = |error: &dyn std::fmt::Display| FaultError::Tls {
            message: error.to_string().into(),
        };
        let certificates = |pem: &str| {
            CertificateDer::pem_slice_iter(pem.as_bytes())
                .collect::<Result<Vec<_>, _>>()
                .map_err(|error| wrong(&error))
        };
        let key = PrivateKeyDer::from_pem_slice(self.key.as_bytes());
        let key = key.map_err(|error| wrong(&error))?;
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| wrong(&error))?;
        let builder = match &self.client_ca {
            None => builder.with_no_client_auth(),
            Some(pem) => {
                let mut roots = RootCertStore::empty();
                for certificate in certificates(pem)? {
                    roots.add(certificate).map_err(|error| wrong(&error))?;
                }
                let verifier =
                    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
                        .build()
                        .map_err(|error| wrong(&error))?;
                builder.with_client_cert_verifier(verifier)
            }
        };
        let config = builder.with_single_cert(certificates(&self.certificate)?, key);
        Ok(Arc::new(config.map_err(|error| wrong(&error))?))
    }
}

/// The two ways of a connection.
pub(super) fn split(
    stream: TcpStream,
    config: Arc<ServerConfig>,
) -> io::Result<(impl Read, impl Write)> {
    let connection = ServerConnection::new(config).map_err(io::Error::other)?;
    let session = Arc::new(Mutex::new(Session {
        connection,
        socket: stream.try_clone()?,
    }));
    let incoming = Incoming {
        session: Arc::clone(&session),
        socket: stream,
        sealed: Vec::new(),
    };
    Ok((incoming, Outgoing(session)))
}

struct Session {
    connection: ServerConnection,
    socket: TcpStream,
}

impl Session {
    fn flush(&mut self) -> io::Result<()> {
        while self.connection.wants_write() {
            self.connection.write_tls(&mut self.socket)?;
        }
        Ok(())
    }
}

fn lock(session: &Mutex<Session>) -> MutexGuard<'_, Session> {
    session.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the client says.
struct Incoming {
    session: Arc<Mutex<Session>>,
    socket: TcpStream,
    /// What was read and not yet opened.
    sealed: Vec<u8>,
}

impl Read for Incoming {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match lock(&self.session).connection.reader().read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                result => return result,
            }
            if self.sealed.is_empty() {
                let mut piece = [0; 16 << 10];
                let read = self.socket.read(&mut piece)?;
                if read == 0 {
                    return Ok(0);
                }
                let piece = piece.get(..read).unwrap_or_default();
                self.sealed.extend_from_slice(piece);
            }
            let mut session = lock(&self.session);
            let mut sealed = self.sealed.as_slice();
            let read = session.connection.read_tls(&mut sealed)?;
            self.sealed.drain(..read);
            let opened = session.connection.process_new_packets();
            // An alert says why it failed.
            session.flush()?;
            opened.map_err(io::Error::other)?;
        }
    }
}

/// What the client hears.
struct Outgoing(Arc<Mutex<Session>>);

impl Write for Outgoing {
    #[expect(
        clippy::disallowed_methods,
        reason = "this is that method, and its caller knows what it does not take"
    )]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut session = lock(&self.0);
        let written = session.connection.writer().write(bytes)?;
        session.flush()?;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        lock(&self.0).flush()
    }
}
