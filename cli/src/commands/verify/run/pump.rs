//! The thread that gives records to producers.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use crate::commands::verify::fleet::{Fleet, TICK};
use crate::exit::{Code, Failure};

/// Gives records to producers while it lives.
#[derive(Debug)]
pub(super) struct Pump {
    ended: Arc<AtomicBool>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Pump {
    /// Starts it.
    ///
    /// # Errors
    ///
    /// There is no thread.
    pub(super) fn start(fleet: Arc<Mutex<Fleet>>) -> Result<Self, Failure> {
        let ended = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&ended);
        let work = move || {
            while !stop.load(Ordering::Acquire) {
                {
                    let mut fleet = fleet.lock().unwrap_or_else(PoisonError::into_inner);
                    fleet.look_after();
                    fleet.pump();
                }
                thread::park_timeout(TICK);
            }
        };
        let thread = thread::Builder::new()
            .name("baler-pump".to_owned())
            .spawn(work);
        let thread = thread.map_err(|error| {
            Failure::new(Code::Internal, format!("cannot start a thread: {error}"))
        })?;
        Ok(Self {
            ended,
            thread: Some(thread),
        })
    }
}

impl Drop for Pump {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            thread.join().ok();
        }
    }
}
