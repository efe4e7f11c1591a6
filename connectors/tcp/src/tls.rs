//! TLS 1.3. Certificates and keys come from the files that the settings name.

use std::fs;
use std::sync::Arc;

use baler_common::transport::Failure;
use baler_common::transport::tls::{TlsFiles, failure, provider};
use rustls::ServerConfig;
use rustls::pki_types::ServerName;
use rustls::server::WebPkiClientVerifier;
use rustls::version::TLS13;
use tokio_rustls::{TlsAcceptor, TlsConnector};

/// Returns an acceptor of connections with TLS. With authorities it demands certificates of senders.
///
/// # Errors
///
/// The certificate or its key is missing, or a file cannot be used.
pub(crate) fn acceptor(files: &TlsFiles) -> Result<TlsAcceptor, Failure> {
    let own = files.own_certificate(fs::read)?.ok_or_else(|| {
        failure("there must be certfile and keyfile: a receiver shows a certificate")
    })?;
    let builder = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13])
        .map_err(failure)?;
    let builder = match files.authorities(fs::read)? {
        None => builder.with_no_client_auth(),
        Some(authorities) => {
            let authorities = Arc::new(authorities);
            let verifier = WebPkiClientVerifier::builder_with_provider(authorities, provider());
            builder.with_client_cert_verifier(verifier.build().map_err(failure)?)
        }
    };
    Ok(TlsAcceptor::from(Arc::new(builder.with_cert_resolver(own))))
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
    let authorities = files.authorities(fs::read)?.ok_or_else(|| {
        failure(
            "there must be cacertfile: the certificates that a sender trusts (the machine's own are \
             in /etc/ssl/certs/ca-certificates.crt on Debian)",
        )
    })?;
    let (config, name) = files.client(fs::read, &[&TLS13], authorities, host)?;
    Ok((config.into(), name))
}
