//! TLS 1.3. Certificates and keys come from the files that the settings name.

use std::fs;

use baler_common::transport::Failure;
use baler_common::transport::tls::TlsFiles;
use rustls::pki_types::ServerName;
use rustls::version::TLS13;
use tokio_rustls::{TlsAcceptor, TlsConnector};

/// Returns an acceptor of connections with TLS. With authorities it demands certificates of senders.
///
/// # Errors
///
/// The certificate or its key is missing, or a file cannot be used.
pub(crate) fn acceptor(files: &TlsFiles) -> Result<TlsAcceptor, Failure> {
    Ok(files.server(fs::read, &[&TLS13])?.into())
}

/// Returns a connector that begins TLS with a receiver, and the receiver's name or address.
///
/// # Errors
///
/// The authorities are missing, or a file or the name cannot be used.
pub(crate) fn connector(
    files: &TlsFiles,
    host: &str,
) -> Result<(TlsConnector, ServerName<'static>), Failure> {
    let authorities = files.required_authorities(fs::read)?;
    let (config, name) = files.client(fs::read, &[&TLS13], authorities, host)?;
    Ok((config.into(), name))
}
