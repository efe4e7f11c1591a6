//! Certificates and keys of the settings `cacertfile`, `certfile` and `keyfile`, for rustls with ring.
//!
//! Each error names the setting and the file. The caller reads the files, and chooses the versions
//! of TLS and the trusted authorities.
//!
//! - A file of authorities may have certificates that rustls cannot read. They are not trusted. One
//!   readable certificate is enough.
//! - Keys are in the forms PKCS #8, PKCS #1 (RSA) and SEC 1 (elliptic curves), without a password.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fmt, io};

use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::WebPkiClientVerifier;
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{ClientConfig, RootCertStore, ServerConfig, SupportedProtocolVersion};

use super::Failure;
use super::uri::{Uri, UriError};

/// The files in PEM that the settings of a connection with TLS name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    authorities: Option<PathBuf>,
    own: Option<OwnFiles>,
}

/// The files of this side's certificate, with the certificates between it and an authority, and of
/// its key.
#[derive(Debug, Clone, PartialEq, Eq)]
struct OwnFiles {
    certificate: PathBuf,
    key: PathBuf,
}

impl TlsFiles {
    /// Takes the files from the settings. Returns `None` if the URI does not have the scheme with
    /// TLS, which is `scheme`.
    ///
    /// # Errors
    ///
    /// A certificate has no key or a key no certificate. Or there are files and no TLS.
    pub fn take(uri: &mut Uri, scheme: &str) -> Result<Option<Self>, UriError> {
        let authorities = uri.take_path("cacertfile");
        let own = match (uri.take_path("certfile"), uri.take_path("keyfile")) {
            (Some(certificate), Some(key)) => Some(OwnFiles { certificate, key }),
            (None, None) => None,
            _ => {
                let what = "certfile and keyfile belong together: one of them";
                return Err(UriError::missing(what));
            }
        };
        if uri.scheme() == scheme {
            return Ok(Some(Self { authorities, own }));
        }
        if authorities.is_some() || own.is_some() {
            return Err(UriError::missing(format!(
                "cacertfile, certfile and keyfile are for TLS: the scheme {scheme}"
            )));
        }
        Ok(None)
    }

    /// Returns the authorities that must have signed the certificates of peers, if a file is named.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or has no certificate of an authority.
    pub fn authorities<'a>(
        &'a self,
        read: impl Fn(&'a Path) -> io::Result<Vec<u8>>,
    ) -> Result<Option<RootCertStore>, Failure> {
        let Some(path) = &self.authorities else {
            return Ok(None);
        };
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(certificates("cacertfile", path, &read)?);
        if roots.is_empty() {
            return Err(bad_file("cacertfile", path, "no certificate is readable"));
        }
        Ok(Some(roots))
    }

    /// Returns the authorities as [`authorities`](Self::authorities) does, for a sender that trusts
    /// nothing else.
    ///
    /// # Errors
    ///
    /// No file is named, it cannot be read, or has no certificate of an authority.
    pub fn required_authorities<'a>(
        &'a self,
        read: impl Fn(&'a Path) -> io::Result<Vec<u8>>,
    ) -> Result<RootCertStore, Failure> {
        self.authorities(read)?.ok_or_else(|| {
            failure(
                "there must be cacertfile: the certificates that a sender trusts (the machine's own \
                 are in /etc/ssl/certs/ca-certificates.crt on Debian)",
            )
        })
    }

    /// Whether a receiver demands certificates of its senders.
    pub fn demands_certificates(&self) -> bool {
        self.authorities.is_some()
    }

    /// Returns this side's certificate and key, if files are named.
    ///
    /// # Errors
    ///
    /// A file cannot be read or is no PEM, or the key is not that of the certificate.
    pub fn own_certificate<'a>(
        &'a self,
        read: impl Fn(&'a Path) -> io::Result<Vec<u8>>,
    ) -> Result<Option<Arc<SingleCertAndKey>>, Failure> {
        let Some(OwnFiles { certificate, key }) = &self.own else {
            return Ok(None);
        };
        let chain = certificates("certfile", certificate, &read)?;
        let private = read(key)
            .map_err(pem::Error::Io)
            .and_then(|text| PrivateKeyDer::from_pem_slice(&text))
            .map_err(|error| bad_file("keyfile", key, error))?;
        let certified = CertifiedKey::from_der(chain, private, &provider()).map_err(|error| {
            let (certificate, key) = (certificate.display(), key.display());
            failure(format!(
                "certfile {certificate} with keyfile {key}: {error}"
            ))
        })?;
        Ok(Some(Arc::new(certified.into())))
    }

    /// Returns the configuration of TLS for a receiver. With authorities it demands certificates of
    /// its senders.
    ///
    /// # Errors
    ///
    /// The certificate or its key is missing, or a file cannot be used.
    pub fn server<'a>(
        &'a self,
        read: impl Fn(&'a Path) -> io::Result<Vec<u8>>,
        versions: &[&'static SupportedProtocolVersion],
    ) -> Result<Arc<ServerConfig>, Failure> {
        let own = self.own_certificate(&read)?.ok_or_else(|| {
            failure("there must be certfile and keyfile: a receiver shows a certificate")
        })?;
        let builder = ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(versions)
            .map_err(failure)?;
        let builder = match self.authorities(read)? {
            None => builder.with_no_client_auth(),
            Some(authorities) => {
                let authorities = Arc::new(authorities);
                let verifier = WebPkiClientVerifier::builder_with_provider(authorities, provider());
                builder.with_client_cert_verifier(verifier.build().map_err(failure)?)
            }
        };
        Ok(Arc::new(builder.with_cert_resolver(own)))
    }

    /// Returns the configuration of TLS with a host, and the name that the host's certificate must
    /// have. The certificate must be signed by one of the `authorities`.
    ///
    /// # Errors
    ///
    /// This side's certificate or key cannot be used, or the host's name is none of DNS.
    pub fn client<'a>(
        &'a self,
        read: impl Fn(&'a Path) -> io::Result<Vec<u8>>,
        versions: &[&'static SupportedProtocolVersion],
        authorities: RootCertStore,
        host: &str,
    ) -> Result<(Arc<ClientConfig>, ServerName<'static>), Failure> {
        let builder = ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(versions)
            .map_err(failure)?
            .with_root_certificates(authorities);
        let config = match self.own_certificate(read)? {
            None => builder.with_no_client_auth(),
            Some(own) => builder.with_client_cert_resolver(own),
        };
        let name = ServerName::try_from(host.to_owned());
        let name = name.map_err(|error| failure(format!("{host}: {error}")))?;
        Ok((Arc::new(config), name))
    }
}

/// Returns the cryptography. It is chosen here, so that none that an application installed for its
/// process is used, and none is installed.
pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

/// Returns the failure that TLS cannot be set up with these settings.
pub fn failure(message: impl fmt::Display) -> Failure {
    Failure::last("set up TLS for", message.to_string())
}

fn certificates<'a>(
    setting: &str,
    path: &'a Path,
    read: &impl Fn(&'a Path) -> io::Result<Vec<u8>>,
) -> Result<Vec<CertificateDer<'static>>, Failure> {
    let parsed = read(path)
        .map_err(pem::Error::Io)
        .and_then(|text| CertificateDer::pem_slice_iter(&text).collect());
    let certificates: Vec<_> = parsed.map_err(|error| bad_file(setting, path, error))?;
    if certificates.is_empty() {
        return Err(bad_file(setting, path, pem::Error::NoItemsFound));
    }
    Ok(certificates)
}

fn bad_file(setting: &str, path: &Path, error: impl fmt::Display) -> Failure {
    failure(format!("{setting} {}: {error}", path.display()))
}

#[cfg(test)]
mod tests;
