//! The segments: one ends, the next begins.

use std::fs::{self, OpenOptions};
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io::Write as _;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use baler_common::transport::TransportError;

use super::{Appender, Segment};
use crate::config::SyncPolicy;
use crate::error::io_error;
use crate::folder::{SegmentEntry, segment_name, sync_folder};
use crate::segment::{SEGMENT_HEADER_BYTES, SegmentHeader};

impl Appender {
    pub(super) fn begin_segment(&mut self) -> Result<&mut Segment, TransportError> {
        let first_chunk = self.next_chunk;
        let path = self.config.folder.join(segment_name(first_chunk));
        let fail = |error| io_error("create", &path, error);
        let since_epoch = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let header = SegmentHeader {
            first_chunk,
            created_unix_ns: u64::try_from(since_epoch.as_nanos()).unwrap_or(u64::MAX),
            tag: random_tag(),
        };
        let mut file = OpenOptions::new()
            .append(true)
            .create_new(true)
            .open(&path)
            .map_err(fail)?;
        let begun = file
            .write_all(&header.encode())
            .and_then(|()| match self.config.sync {
                SyncPolicy::None => Ok(()),
                SyncPolicy::Chunk | SyncPolicy::Interval(_) => sync_folder(&self.config.folder),
            });
        if let Err(error) = begun {
            // There is no chunk in it. If it cannot be removed either, recovery will do it.
            drop(fs::remove_file(&path));
            return Err(fail(error));
        }
        self.counters.segments.add(1);
        self.segments.push_back(SegmentEntry {
            first_chunk,
            bytes: SEGMENT_HEADER_BYTES as u64,
        });
        Ok(self.current.insert(Segment {
            file,
            path,
            tag: header.tag,
            sound_bytes: SEGMENT_HEADER_BYTES as u64,
            begun: Instant::now(),
            unsynced: true,
        }))
    }

    pub(super) fn finish_segment(&mut self) -> Result<(), TransportError> {
        self.flush()?;
        if self.config.sync != SyncPolicy::None {
            // The next segment must not be on disk when this one is not.
            self.sync()?;
        }
        self.current = None;
        Ok(())
    }

    pub(super) fn sync_folder(&self) -> Result<(), TransportError> {
        match self.config.sync {
            SyncPolicy::None => Ok(()),
            SyncPolicy::Chunk | SyncPolicy::Interval(_) => sync_folder(&self.config.folder)
                .map_err(|error| io_error("sync", &self.config.folder, error)),
        }
    }
}

/// A number that no other segment is likely to have. The standard library seeds its hash maps from
/// the operating system's randomness.
fn random_tag() -> u32 {
    let [a, b, c, d, ..] = RandomState::new().build_hasher().finish().to_le_bytes();
    u32::from_le_bytes([a, b, c, d])
}
