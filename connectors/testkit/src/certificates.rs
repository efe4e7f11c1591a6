//! Certificates and keys for TLS, in files.

use std::fs;
use std::path::Path;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose,
};

/// Writes two authorities: `authority` with the certificates `one` and `two`, `stranger` with a
/// `third`. The certificates are for 127.0.0.1, of senders and of receivers.
pub fn issue(folder: &Path) {
    let write = |name: String, text: String| {
        fs::write(folder.join(name), text).expect("the folder can be written");
    };
    let key = || KeyPair::generate().expect("a key is made");
    for (authority, names) in [("authority", &["one", "two"][..]), ("stranger", &["third"])] {
        let mut params = CertificateParams::default();
        params
            .distinguished_name
            .push(DnType::CommonName, authority);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, key()).expect("it signs itself");
        write(format!("{authority}.pem"), issuer.pem());
        for name in names {
            let params = CertificateParams::new(vec!["127.0.0.1".to_owned()]);
            let mut params = params.expect("an address is a name");
            params.distinguished_name.push(DnType::CommonName, *name);
            params.extended_key_usages = vec![
                ExtendedKeyUsagePurpose::ClientAuth,
                ExtendedKeyUsagePurpose::ServerAuth,
            ];
            let key = key();
            let certificate = params.signed_by(&key, &issuer).expect("it is signed");
            write(format!("{name}.pem"), certificate.pem());
            write(format!("{name}.key"), key.serialize_pem());
        }
    }
}

/// Returns the settings of a URI: the authority that this side trusts, and its own certificate.
pub fn settings(folder: &Path, authority: Option<&str>, certificate: Option<&str>) -> String {
    let file = |setting: &str, name: &str, ending: &str| {
        let path = folder.join(format!("{name}.{ending}"));
        format!("{setting}={}", path.display())
    };
    let mut settings = Vec::new();
    settings.extend(authority.map(|name| file("cacertfile", name, "pem")));
    settings.extend(certificate.map(|name| file("certfile", name, "pem")));
    settings.extend(certificate.map(|name| file("keyfile", name, "key")));
    settings.join("&")
}
