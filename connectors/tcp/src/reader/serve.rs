//! The thread that listens.

use std::net::TcpListener;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time;

use super::connection::{self, Settings};
use super::counts::add;
use super::shared::Shared;
use crate::error::failed;

/// How long to leave an operating system alone that cannot accept, for lack of files say.
const PAUSE: Duration = Duration::from_millis(100);

/// Takes connections until told to stop, and serves them until then.
pub(super) async fn serve(
    listener: TcpListener,
    settings: &Arc<Settings>,
    shared: &Arc<Shared>,
    mut stop: watch::Receiver<Option<Instant>>,
) {
    let listener = match tokio::net::TcpListener::from_std(listener) {
        Ok(listener) => listener,
        Err(error) => return shared.push_failure(failed("listen at", &error)),
    };
    let most = settings.config.max_connections.get();
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            // Its sender lives as long as the reader; both mean the end.
            _ = stop.changed() => break,
            Some(_) = connections.join_next() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, peer)) if connections.len() < most => {
                    let serving = connection::serve(
                        stream,
                        peer,
                        Arc::clone(settings),
                        Arc::clone(shared),
                        stop.clone(),
                    );
                    connections.spawn(serving);
                }
                Ok(_) => add(&shared.counts.connections_turned_away, 1),
                Err(error) => {
                    shared.push_failure(failed("accept at", &error));
                    time::sleep(PAUSE).await;
                }
            },
        }
    }
    drop(listener);
    let by = stop.borrow().unwrap_or_else(Instant::now);
    let farewells = async { while connections.join_next().await.is_some() {} };
    // Who is not done by then is cut.
    time::timeout_at(by.into(), farewells).await.ok();
}
