//! From the settings to a channel on which everything is declared, on a thread of its own.

use std::future::poll_fn;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use futures_core::Stream;
use lapin::tcp::{OwnedIdentity, OwnedTLSConfig};
use lapin::uri::{AMQPAuthority, AMQPQueryString, AMQPScheme, AMQPUri, AMQPUserInfo};
use lapin::{Channel, Connect, Connection, ConnectionProperties};

use crate::config::AmqpConfig;
use crate::error::Failure;
use crate::topology;

/// A channel on which everything is declared, and the connection that it needs.
pub(crate) struct Connected {
    pub(crate) connection: Connection,
    pub(crate) channel: Channel,
}

/// Runs `body` in a runtime of its own on a thread of its own: no runtime of the application is
/// needed or disturbed.
pub(crate) fn spawn<F: Future<Output = ()>>(
    name: &str,
    body: impl FnOnce() -> F + Send + 'static,
) -> Result<JoinHandle<()>, Failure> {
    let failed = |error: io::Error| Failure::retry("set up", error.to_string());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(failed)?;
    let run = move || {
        runtime.block_on(body());
        // Not dropped: that waits for a name that is being looked up, without a deadline.
        runtime.shutdown_background();
    };
    thread::Builder::new()
        .name(name.into())
        .spawn(run)
        .map_err(failed)
}

/// Connects and declares, before `by` and within the configured time.
pub(crate) async fn connect(
    config: &AmqpConfig,
    name: &'static str,
    by: Instant,
) -> Result<Connected, Failure> {
    let by = by.min(Instant::now() + config.connect_timeout);
    let connecting = tokio::time::timeout_at(by.into(), open(config, name));
    match connecting.await {
        Ok(connected) => connected,
        Err(_) => Err(Failure::retry("connect to", "no answer in time")),
    }
}

async fn open(config: &AmqpConfig, name: &'static str) -> Result<Connected, Failure> {
    let failed = |error: lapin::Error| Failure::of_setup("connect to", &error);
    let properties = ConnectionProperties::default().with_connection_name(name.into());
    let tls = tls(config)?;
    let runtime = lapin::runtime::default_runtime().map_err(failed)?;
    let connection = uri(config)
        .connect_with_config(properties, tls, runtime)
        .await
        .map_err(failed)?;
    let channel = connection.create_channel().await.map_err(failed)?;
    topology::declare(&channel, config).await?;
    Ok(Connected {
        connection,
        channel,
    })
}

fn uri(config: &AmqpConfig) -> AMQPUri {
    let heartbeat = config.heartbeat.as_secs().max(1);
    AMQPUri {
        scheme: if config.tls {
            AMQPScheme::AMQPS
        } else {
            AMQPScheme::AMQP
        },
        authority: AMQPAuthority {
            userinfo: AMQPUserInfo {
                username: config.user.to_string(),
                password: config.password.to_string(),
            },
            host: config.host.name.to_string(),
            port: config.port(),
        },
        vhost: config.vhost.to_string(),
        query: AMQPQueryString {
            heartbeat: Some(u16::try_from(heartbeat).unwrap_or(u16::MAX)),
            ..AMQPQueryString::default()
        },
    }
}

/// Read at every connection, so that renewed certificates are taken up.
fn tls(config: &AmqpConfig) -> Result<OwnedTLSConfig, Failure> {
    let read = |path: &Path| {
        std::fs::read(path)
            .map_err(|error| Failure::last("connect to", format!("{}: {error}", path.display())))
    };
    let mut tls = OwnedTLSConfig::default();
    if let Some(path) = &config.ca_file {
        let pem = String::from_utf8(read(path)?);
        let pem =
            pem.map_err(|_| Failure::last("connect to", format!("{}: not PEM", path.display())))?;
        tls.cert_chain = Some(pem);
    }
    if let (Some(cert), Some(key)) = (&config.cert_file, &config.key_file) {
        tls.identity = Some(OwnedIdentity::PKCS8 {
            pem: read(cert)?,
            key: read(key)?,
        });
    }
    Ok(tls)
}

impl Connected {
    /// Tells the broker that this was all, which also makes sure that it has everything.
    pub(crate) async fn close(self, by: Instant) -> Result<(), Failure> {
        let by = by.min(Instant::now() + CLOSE_AT_MOST);
        let closing = self.connection.close(200, "OK".into());
        match tokio::time::timeout_at(by.into(), closing).await {
            Ok(closed) => closed.map_err(|error| Failure::of_use("close", &error)),
            Err(_) => Err(Failure::retry("close", "no answer in time")),
        }
    }
}

/// A broker that hangs is not waited for.
const CLOSE_AT_MOST: Duration = Duration::from_secs(5);

/// The next item of a stream.
pub(crate) async fn next<S: Stream + Unpin>(stream: &mut S) -> Option<S::Item> {
    poll_fn(|cx| Pin::new(&mut *stream).poll_next(cx)).await
}
