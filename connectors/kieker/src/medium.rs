//! The media, for programs that open them by URI.

use std::sync::Arc;

use baler_common::transport::uri::{Uri, UriError};
use baler_common::transport::{Browse, Medium, OpenReader, ReaderFactory, Readership};

use crate::adaptive::Bridge;
use crate::config::KiekerTcpConfig;
use crate::log::{KiekerLogConfig, KiekerLogReader};
use crate::reader::KiekerTcpReader;
use crate::writer::{
    KiekerLogWriter, KiekerLogWriterConfig, KiekerTcpWriter, KiekerTcpWriterConfig,
};
use crate::{LOG_SCHEME, SCHEME};

/// This medium, for programs that open media by URI.
pub const MEDIUM: Medium = Medium {
    schemes: &[SCHEME],
    writer: |uri| {
        let config = KiekerTcpWriterConfig::from_uri(uri)?;
        Ok(Box::new(KiekerTcpWriter::new(config)))
    },
    receiver: |uri, _follow| adaptive_receiver(uri, Arc::default()),
    browser: None,
};

/// Receives streams of Kieker's records. The patterns of `bridge` switch the probes of senders that
/// speak the [adaptive protocol](crate::adaptive).
///
/// # Errors
///
/// The URI is wrong; see [`KiekerTcpConfig::from_uri`].
pub fn adaptive_receiver(uri: Uri, bridge: Arc<Bridge>) -> Result<ReaderFactory, UriError> {
    let config = KiekerTcpConfig::from_uri(uri)?;
    Ok(ReaderFactory::new(Readership::OneProcess, move || {
        let reader = KiekerTcpReader::bind_with(config.clone(), Arc::clone(&bridge))?;
        let address = reader.local_addr();
        let warning = format!(
            "any host that reaches {address} can send records, since Kieker's protocol has neither \
             passwords nor encryption; listen on 127.0.0.1 or in a network of its own"
        );
        Ok(OpenReader {
            listens_on: Some(address),
            warning: (!address.ip().is_loopback()).then(|| warning.into()),
            ..reader.into()
        })
    }))
}

/// Logs, for programs that open media by URI.
pub const LOG_MEDIUM: Medium = Medium {
    schemes: &[LOG_SCHEME],
    writer: |uri| {
        let config = KiekerLogWriterConfig::from_uri(uri)?;
        Ok(Box::new(KiekerLogWriter::new(config)))
    },
    receiver: |uri, follow| {
        let config = KiekerLogConfig::from_uri(uri, follow)?;
        let open = move || KiekerLogReader::open(config.clone());
        Ok(ReaderFactory::new(Readership::OneProcess, open))
    },
    browser: Some(|uri, browse| {
        let mut config = KiekerLogConfig::from_uri(uri, browse != Browse::UntilNow)?;
        config.follow = browse != Browse::UntilNow;
        config.from_now = browse == Browse::FromNow;
        // A browser leaves no trace.
        config.position_file = None;
        let open = move || KiekerLogReader::open(config.clone());
        Ok(ReaderFactory::browser(open))
    }),
};
