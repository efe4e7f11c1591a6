//! TLS 1.3 by rustls with ring. Certificates and keys come from the files that the settings name.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use baler_common::transport::Failure;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::WebPkiClientVerifier;
use rustls::version::TLS13;
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig};
use tokio_rustls::TlsAcceptor;

use crate::config::TlsFiles;

/// How much is read from the socket at a time.
const READ_BYTES: usize = 4 << 10;

/// Takes connections with TLS.
///
/// # Errors
///
/// The certificate or its key is missing, or a file cannot be used.
pub(crate) fn acceptor(files: &TlsFiles) -> Result<TlsAcceptor, Failure> {
    let (certificates, key) = own_certificate(files)?
        .ok_or_else(|| missing("certfile and keyfile: a receiver shows a certificate"))?;
    let builder = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])
        .map_err(unusable)?;
    let builder = match &files.authority {
        None => builder.with_no_client_auth(),
        Some(path) => {
            let roots = Arc::new(authorities(path)?);
            let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider());
            builder.with_client_cert_verifier(verifier.build().map_err(unusable)?)
        }
    };
    let config = builder.with_single_cert(certificates, key);
    Ok(TlsAcceptor::from(Arc::new(config.map_err(unusable)?)))
}

/// Begins TLS with a receiver of this name or address.
///
/// # Errors
///
/// The authority is missing, or a file or the name cannot be used.
pub(crate) fn session(files: &TlsFiles, host: &str) -> Result<ClientConnection, Failure> {
    let path = files.authority.as_ref().ok_or_else(|| {
        missing(
            "cacertfile: the certificates that a sender trusts (the machine's own are in \
             /etc/ssl/certs/ca-certificates.crt on Debian)",
        )
    })?;
    let builder = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])
        .map_err(unusable)?
        .with_root_certificates(authorities(path)?);
    let config = match own_certificate(files)? {
        None => builder.with_no_client_auth(),
        Some((certificates, key)) => builder
            .with_client_auth_cert(certificates, key)
            .map_err(unusable)?,
    };
    let name = ServerName::try_from(host.to_owned()).map_err(unusable)?;
    ClientConnection::new(Arc::new(config), name).map_err(unusable)
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

/// The certificates of a file that peers' certificates must be signed by.
fn authorities(path: &Path) -> Result<RootCertStore, Failure> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates("cacertfile", path)? {
        roots.add(certificate).map_err(unusable)?;
    }
    Ok(roots)
}

/// This side's certificates and key, if there are.
fn own_certificate(
    files: &TlsFiles,
) -> Result<Option<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>)>, Failure> {
    let (Some(certificate), Some(key)) = (&files.certificate, &files.key) else {
        return Ok(None);
    };
    let certificates = certificates("certfile", certificate)?;
    let key =
        PrivateKeyDer::from_pem_file(key).map_err(|error| bad_file("keyfile", key, &error))?;
    Ok(Some((certificates, key)))
}

fn certificates(setting: &str, path: &Path) -> Result<Vec<CertificateDer<'static>>, Failure> {
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect);
    let certificates: Vec<_> = read.map_err(|error| bad_file(setting, path, &error))?;
    if certificates.is_empty() {
        return Err(bad_file(setting, path, &pem::Error::NoItemsFound));
    }
    Ok(certificates)
}

fn bad_file(setting: &str, path: &Path, error: &pem::Error) -> Failure {
    let path: PathBuf = path.into();
    Failure::last("open", format!("{setting} {}: {error}", path.display()))
}

fn missing(what: &str) -> Failure {
    Failure::last("open", format!("with tcp+tls there must be {what}"))
}

fn unusable(error: impl fmt::Display) -> Failure {
    Failure::last("open", format!("TLS: {error}"))
}

/// The sending end of a connection with TLS, for the two threads of a writer.
///
/// One reads from the socket and the other one writes to it; they share the session, which does no
/// I/O. What the session has to answer by itself goes out with the next frame or heartbeat.
#[derive(Debug)]
pub(crate) struct TlsSession(Mutex<ClientConnection>);

impl TlsSession {
    pub(crate) fn new(session: ClientConnection) -> Self {
        Self(Mutex::new(session))
    }

    /// Reads what the receiver has sent.
    pub(crate) fn read(&self, mut socket: &TcpStream, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = self.lock().reader().read(buffer);
            match read {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                done => return done,
            }
            let mut sealed = [0; READ_BYTES];
            let read = socket.read(&mut sealed)?;
            let mut sealed = sealed.get(..read).unwrap_or_default();
            if sealed.is_empty() {
                return Ok(0);
            }
            let mut session = self.lock();
            while !sealed.is_empty() {
                session.read_tls(&mut sealed)?;
                let processed = session.process_new_packets();
                processed.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
            }
        }
    }

    /// Writes some of these bytes.
    pub(crate) fn write(&self, socket: &TcpStream, parts: &[io::IoSlice<'_>]) -> io::Result<usize> {
        let written = self.lock().writer().write_vectored(parts)?;
        self.flush(socket)?;
        Ok(written)
    }

    /// Does the next step of the handshake; whether it is complete.
    pub(crate) fn shake_hands(&self, mut socket: &TcpStream) -> io::Result<bool> {
        self.flush(socket)?;
        let mut session = self.lock();
        if session.read_tls(&mut socket)? == 0 {
            let message = "the receiver closed the connection during the TLS handshake";
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, message));
        }
        let processed = session.process_new_packets();
        let done = !session.is_handshaking();
        drop(session);
        // What is wrong, too.
        self.flush(socket)?;
        processed.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        Ok(done)
    }

    /// Writes what the session has for the receiver.
    fn flush(&self, mut socket: &TcpStream) -> io::Result<()> {
        let mut sealed = Vec::new();
        let mut session = self.lock();
        while session.wants_write() {
            session.write_tls(&mut sealed)?;
        }
        drop(session);
        socket.write_all(&sealed)
    }

    fn lock(&self) -> MutexGuard<'_, ClientConnection> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
