//! TLS 1.3 by rustls with ring. Certificates and keys come from the files that the settings name.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use baler_common::transport::Failure;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::WebPkiClientVerifier;
use rustls::version::TLS13;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio_rustls::{TlsAcceptor, TlsConnector};

use crate::config::TlsFiles;

/// Returns an acceptor of connections with TLS.
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

/// Returns a connector that begins TLS with a receiver, and the receiver's name or address.
///
/// # Errors
///
/// The authority is missing, or a file or the name cannot be used.
pub(crate) fn connector(
    files: &TlsFiles,
    host: &str,
) -> Result<(TlsConnector, ServerName<'static>), Failure> {
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
    Ok((TlsConnector::from(Arc::new(config)), name))
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

/// Reads the authorities that must have signed the certificates of peers.
fn authorities(path: &Path) -> Result<RootCertStore, Failure> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates("cacertfile", path)? {
        roots.add(certificate).map_err(unusable)?;
    }
    Ok(roots)
}

/// Reads this side's certificates and key, if the settings name them.
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
