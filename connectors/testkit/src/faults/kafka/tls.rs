//! The server's end of TLS, in front of brokers that speak plain text.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection, StreamOwned};

use crate::faults::FaultError;

/// The certificate of a proxy, and the authority of its clients; all of it PEM.
#[derive(Clone)]
pub struct KafkaTls {
    /// The server's certificate, followed by the certificates of its authorities.
    pub certificate: String,
    /// The key of the certificate.
    pub key: String,
    /// The authority that signs clients' certificates; without it no certificate is demanded.
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
        let wrong = |error: &dyn std::fmt::Display| {
            FaultError::Failed(format!("cannot speak TLS: {error}").into())
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

/// The time for which one direction is read before the other one has its turn.
const TURN: Duration = Duration::from_millis(1);

/// Returns a connection that carries the plain text of a client's connection.
pub(super) fn decrypted(client: TcpStream, config: Arc<ServerConfig>) -> io::Result<TcpStream> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let plain = TcpStream::connect(listener.local_addr()?)?;
    let (decrypted, _) = listener.accept()?;
    for stream in [&client, &plain] {
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(TURN))?;
    }
    let session = ServerConnection::new(config).map_err(io::Error::other)?;
    thread::spawn(move || forward(StreamOwned::new(session, client), plain));
    Ok(decrypted)
}

/// Forwards both ways until one of them ends. One thread does both, because TLS has one state for
/// both.
fn forward(mut client: StreamOwned<ServerConnection, TcpStream>, mut plain: TcpStream) {
    let mut buffer = vec![0; 16 << 10];
    let mut both = || {
        pass(&mut client, &mut plain, &mut buffer)?;
        pass(&mut plain, &mut client, &mut buffer)
    };
    while both().is_ok() {}
}

/// Passes on the bytes that come soon.
fn pass(from: &mut impl Read, to: &mut impl Write, buffer: &mut [u8]) -> io::Result<()> {
    match from.read(buffer) {
        Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
        Ok(read) => {
            to.write_all(&buffer[..read])?;
            to.flush()
        }
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
        Err(error) => Err(error),
    }
}
