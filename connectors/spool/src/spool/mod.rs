//! The owner's side: straight through while the medium is fine, to the spool's thread otherwise.

mod route;
mod writer;

use std::fmt;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use baler_common::transport::{Capability, ChunkWriter, Confirmation, RetryClass, TransportError};

use self::route::Progress;
use crate::config::SpoolConfig;
use crate::direct::Direct;
use crate::shared::{Shared, Stop};
use crate::watch::{SpoolStatus, SpoolWatch};
use crate::worker::Worker;

/// How much longer than its deadline a close waits for the disk.
const DISK_GRACE: Duration = Duration::from_millis(500);

/// Puts the chunks for another writer on disk while its medium is away, and sends them on in order
/// when it is back. README.md tells what is promised when.
///
/// It starts closed, as every writer. Dropping it without [`close`](ChunkWriter::close) is like a
/// crash: what is on disk stays for the next life.
pub struct Spool {
    config: SpoolConfig,
    capability: Capability,
    shared: Arc<Shared>,
    /// Before the first opening.
    fresh: Option<Box<dyn ChunkWriter>>,
    started: bool,
    direct: Option<Direct>,
    /// Known before the direct way began or ended, and not yet told.
    early: Vec<Confirmation>,
    /// The owner has to reopen before anything else.
    broken: Option<TransportError>,
    progress: Progress,
    /// Whether the owner waits for confirmations. The thread always does.
    awaited: bool,
}

impl Spool {
    /// A spool before this writer, closed. Nothing is touched before it is opened.
    pub fn new(inner: Box<dyn ChunkWriter>, config: SpoolConfig) -> Self {
        Self {
            capability: inner.capability().clone(),
            shared: Shared::new(SpoolWatch::default()),
            config,
            fresh: Some(inner),
            started: false,
            direct: None,
            early: Vec::new(),
            broken: None,
            progress: Progress::begin(),
            awaited: true,
        }
    }

    /// What it did, does and holds.
    pub fn status(&self) -> SpoolStatus {
        self.shared.watch.status()
    }

    /// Reads the status while somebody else owns the spool.
    pub fn watch(&self) -> SpoolWatch {
        self.shared.watch.clone()
    }

    fn error(&self, operation: &'static str, class: RetryClass, message: &str) -> TransportError {
        TransportError::new(operation, self.capability.medium, class, message)
    }

    /// Starts the thread, with the writer of the medium.
    fn start(&mut self) -> Result<(), TransportError> {
        let worker = Worker::new(self.config.clone(), Arc::clone(&self.shared));
        let started = thread::Builder::new()
            .name("baler-spool".into())
            .spawn(move || worker.run());
        match started {
            Ok(_) => {
                self.started = true;
                Ok(())
            }
            Err(error) => {
                let medium = self.capability.medium;
                Err(TransportError::caused_by(
                    "start a thread for",
                    medium,
                    RetryClass::Retry,
                    error,
                ))
            }
        }
    }
}

impl Drop for Spool {
    fn drop(&mut self) {
        self.shared.order(|state| {
            if state.stop == Stop::No {
                state.stop = Stop::Drop;
            }
        });
    }
}

impl fmt::Debug for Spool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spool")
            .field("config", &self.config)
            .field("status", &self.status())
            .finish_non_exhaustive()
    }
}
