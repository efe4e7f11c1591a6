//! The folder: whose it is, and what earlier lives left in it.

use std::fs::{self, OpenOptions, TryLockError};
use std::io::Write as _;
use std::path::PathBuf;
use std::time::Instant;

use baler_common::transport::{RetryClass, TransportError};
use baler_connector_file::{ConsumerName, backlog, parse_segment_name};

use super::{CONSUMER, OPEN_TIMEOUT, Store};
use crate::{CHUNKS_FOLDER, LOCK_FILE};

impl Store {
    pub(super) fn chunks_folder(&self) -> PathBuf {
        self.config.folder.join(CHUNKS_FOLDER)
    }

    pub(super) fn endpoint(&self) -> String {
        format!("spool:{}", self.config.folder.display())
    }

    /// Locks the folder and looks what an earlier life left.
    ///
    /// `Err` means that another process has it; a disk that cannot be used now is a
    /// [failure](Self::is_failing) like others.
    pub(crate) fn prepare(&mut self, now: Instant) -> Result<(), TransportError> {
        if self.lock.is_some() {
            return Ok(());
        }
        let path = self.config.folder.join(LOCK_FILE);
        let opened = fs::create_dir_all(&self.config.folder).and_then(|()| {
            OpenOptions::new()
                .create(true)
                .truncate(false)
                .read(true)
                .write(true)
                .open(&path)
        });
        let mut file = match opened {
            Ok(file) => file,
            Err(error) => {
                self.fail(now, self.disk_error("open", error));
                return Ok(());
            }
        };
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let holder = fs::read_to_string(&path).unwrap_or_default();
                let process = match holder.trim() {
                    "" => String::from("another process"),
                    process => format!("another process ({process})"),
                };
                return Err(TransportError::new(
                    "lock",
                    self.endpoint(),
                    RetryClass::Retry,
                    format!("{process} has this spool; give each process its own folder"),
                ));
            }
            Err(TryLockError::Error(error)) => {
                self.fail(now, self.disk_error("lock", error));
                return Ok(());
            }
        }
        // The process is told to people only: a full disk must not keep anybody from opening.
        let told = file
            .set_len(0)
            .and_then(|()| file.write_all(std::process::id().to_string().as_bytes()));
        drop(told);
        self.lock = Some(file);
        self.find_what_was_left(now);
        Ok(())
    }

    fn find_what_was_left(&mut self, now: Instant) {
        let folder = self.chunks_folder();
        if !folder.is_dir() {
            return;
        }
        // The writer moves a torn end aside before anything is counted.
        self.ensure_writable(now);
        let Ok(name) = CONSUMER.parse::<ConsumerName>() else {
            return;
        };
        match backlog(&folder, &name) {
            Ok(found) => {
                self.readable = found.chunks;
                self.watch.update(|status| {
                    status.found_chunks = found.chunks;
                    status.found_records = found.records;
                    status.waiting_records = found.records;
                    status.stats.waiting_chunks = found.chunks;
                    status.stats.waiting_bytes = found.bytes;
                });
            }
            Err(error) => self.fail(now, self.disk_error("read", error)),
        }
        if self.readable == 0 {
            self.clear(now + OPEN_TIMEOUT, false);
        }
    }

    pub(super) fn remove_segments(&self, is_settled: impl Fn(u64) -> bool) {
        let Ok(entries) = fs::read_dir(self.chunks_folder()) else {
            return;
        };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let segment = name.to_str().and_then(parse_segment_name);
            if segment.is_some_and(&is_settled) {
                // One that stays is read again in the next life, at worst.
                let removed = fs::remove_file(entry.path());
                drop(removed);
            }
        }
    }
}
