//! The quarantine of chunks that cannot be processed: a folder, or a topic or queue by its URI.

use std::collections::HashMap;
use std::io;
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use baler_analysis::Source;
use baler_connector_file::quarantine::{
    Attempts, MediumQuarantine, NotKept, Poison, PutAside, Quarantine, QuarantineFolder,
};

use crate::args::{AttemptsArgs, QuarantineArgs};
use crate::endpoint;
use crate::exit::{Code, Failure};

/// The default limits of a folder: its chunks, and its bytes.
const MAX_CHUNKS: u64 = 10_000;
const MAX_BYTES: u64 = 1 << 30;

/// How long a full folder counts as full before the next look. A look at 20,000 files costs
/// milliseconds, and poison may come a thousand times a second.
const FULL_FOR: Duration = Duration::from_secs(10);

/// The quarantine that several workers share. It logs each peer and reason once, even without a
/// place for the chunks.
#[derive(Clone)]
pub(crate) struct SharedQuarantine {
    state: Arc<Mutex<QuarantineState>>,
    /// Whether a sound chunk is never discarded, even without a place for it.
    keeps_sound: bool,
}

struct QuarantineState {
    /// The folder or the medium. Without one, the bytes are discarded.
    inner: Option<Box<dyn Quarantine>>,
    /// Whether a full folder discards chunks that are not sound. Otherwise a full folder is an
    /// error.
    discards_when_full: bool,
    full_since: Option<Instant>,
    reasons: Reasons,
}

/// Returns the quarantine that `--quarantine` names, if any: a folder, or the URI of a medium. A
/// medium has `patience` to confirm each chunk.
///
/// # Errors
///
/// The URI is wrong, or a limit is given for a medium.
pub(crate) fn shared(
    args: &QuarantineArgs,
    patience: Duration,
) -> Result<SharedQuarantine, Failure> {
    let state = QuarantineState {
        inner: open(args, patience)?,
        discards_when_full: args.quarantine_bytes.is_none(),
        full_since: None,
        reasons: Reasons::default(),
    };
    Ok(SharedQuarantine {
        state: Arc::new(Mutex::new(state)),
        keeps_sound: false,
    })
}

/// The policy for chunks that a source cannot process, or that crash their process.
pub(crate) struct PoisonPolicy {
    pub(crate) quarantine: SharedQuarantine,
    /// The counts of attempts on disk, if the quarantine is a folder.
    attempts: Option<Attempts>,
    max_attempts: Option<NonZeroU32>,
}

impl PoisonPolicy {
    /// Creates the policy that the flags ask for.
    ///
    /// # Errors
    ///
    /// As [`shared`], or the folder cannot be written.
    pub(crate) fn new(
        args: &QuarantineArgs,
        attempts: &AttemptsArgs,
        patience: Duration,
    ) -> Result<Self, Failure> {
        let quarantine = shared(args, patience)?;
        let target = args.quarantine.as_deref();
        let folder = target.filter(|target| !endpoint::is_uri(target));
        let open = |folder: &str| {
            Attempts::open(Path::new(folder)).map_err(|error| {
                Failure::new(Code::Output, format!("--quarantine {folder}: {error}"))
            })
        };
        let attempts_on_disk = folder.map(open).transpose()?;
        let discarded = attempts_on_disk
            .as_ref()
            .map_or(0, Attempts::discarded_files);
        if discarded > 0 {
            tracing::warn!(
                files = discarded,
                "counts of attempts of another version of baler were discarded"
            );
        }
        Ok(Self {
            quarantine,
            attempts: attempts_on_disk,
            // Without a quarantine the chunk would be lost.
            max_attempts: target.and_then(|_| NonZeroU32::new(attempts.max_attempts)),
        })
    }

    /// Returns the source with this policy.
    pub(crate) fn apply(&self, source: Source) -> Source {
        let source = source
            .with_quarantine(self.quarantine.clone())
            .with_max_attempts(self.max_attempts);
        match &self.attempts {
            Some(attempts) => source.with_attempts(attempts),
            None => source,
        }
    }
}

fn open(args: &QuarantineArgs, patience: Duration) -> Result<Option<Box<dyn Quarantine>>, Failure> {
    let Some(target) = args.quarantine.as_deref() else {
        return Ok(None);
    };
    if endpoint::is_uri(target) {
        if let Some(bytes) = args.quarantine_bytes {
            return Err(Failure::configuration(format!(
                "--quarantine-bytes {bytes} is the limit of a folder, --quarantine {} is a medium: \
                 limit it there",
                endpoint::shown(target)
            )));
        }
        let writer = endpoint::writer(target)?.writer;
        let medium = MediumQuarantine::new(writer).with_patience(patience);
        return Ok(Some(Box::new(medium)));
    }
    let folder = QuarantineFolder::new(target);
    Ok(Some(Box::new(match args.quarantine_bytes {
        Some(bytes) => folder.limited_to(bytes.get() as u64),
        None => folder.limited_to(MAX_BYTES).with_most_chunks(MAX_CHUNKS),
    })))
}

impl QuarantineState {
    /// Puts chunks aside. Returns the result for each chunk.
    fn put(&mut self, group: &[Poison<'_>]) -> Vec<io::Result<PutAside>> {
        group.iter().for_each(|poison| self.reasons.tell(poison));
        let has_sound = group.iter().any(|poison| poison.is_sound);
        let is_full = self
            .full_since
            .is_some_and(|since| since.elapsed() < FULL_FOR);
        let discard = |why| group.iter().map(|_| Ok(PutAside::Counted(why))).collect();
        let inner = match &mut self.inner {
            None => return discard(NotKept::NoQuarantine),
            Some(_) if is_full && !has_sound => return discard(NotKept::Full),
            Some(inner) => inner,
        };
        let results = inner.put_group_aside(group).into_iter();
        results
            .zip(group)
            .map(|(result, poison)| match result {
                Err(error)
                    if self.discards_when_full
                        && !poison.is_sound
                        && error.kind() == io::ErrorKind::QuotaExceeded =>
                {
                    if self.full_since.replace(Instant::now()).is_none() {
                        tracing::warn!(%error, "what does not fit is discarded and counted");
                    }
                    Ok(PutAside::Counted(NotKept::Full))
                }
                other => other,
            })
            .collect()
    }
}

impl SharedQuarantine {
    /// Returns the same quarantine for a relay. Without a place, it does not discard a chunk that
    /// only its target refuses.
    pub(crate) fn keeping_sound_chunks(mut self) -> Self {
        self.keeps_sound = true;
        self
    }

    fn lock(&self) -> MutexGuard<'_, QuarantineState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Quarantine for SharedQuarantine {
    fn put_aside(&mut self, poison: Poison<'_>) -> io::Result<PutAside> {
        let mut results = self.put_group_aside(&[poison]);
        results.pop().expect("there is a result for each chunk")
    }

    fn put_group_aside(&mut self, group: &[Poison<'_>]) -> Vec<io::Result<PutAside>> {
        let results = self.lock().put(group).into_iter().zip(group);
        results
            .map(|(result, poison)| match result {
                Ok(PutAside::Counted(NotKept::NoQuarantine))
                    if self.keeps_sound && poison.is_sound =>
                {
                    let message = "there is no quarantine, and it would be lost without one";
                    Err(io::Error::other(message))
                }
                other => other,
            })
            .collect()
    }
}

/// The reasons why bytes could not be processed. Each peer and kind of reason is logged once, then
/// counted.
#[derive(Debug, Default)]
struct Reasons {
    /// The first reason and the count, by peer and kind.
    counts: HashMap<(Box<str>, String), (String, u64)>,
    /// The count of all others, beyond [`Reasons::MAX`].
    others: u64,
}

impl Reasons {
    /// The maximum number of peers and kinds that are counted separately.
    const MAX: usize = 64;

    fn tell(&mut self, poison: &Poison<'_>) {
        let key = (peer(&poison.origin.endpoint), poison.kind());
        if let Some((_, count)) = self.counts.get_mut(&key) {
            *count += 1;
        } else if self.counts.len() < Self::MAX {
            let (origin, reason) = (poison.origin.to_string(), poison.reason);
            tracing::warn!(origin, reason, "bytes cannot be processed");
            self.counts.insert(key, (reason.to_owned(), 1));
        } else {
            self.others += 1;
        }
    }
}

impl Drop for Reasons {
    fn drop(&mut self) {
        let again = self.counts.iter().filter(|(_, (_, count))| *count > 1);
        for ((peer, _), (first, count)) in again {
            tracing::warn!(peer, count, first, "bytes could not be processed");
        }
        if self.others > 0 {
            let count = self.others;
            tracing::warn!(count, "bytes of other peers could not be processed");
        }
    }
}

/// Returns an endpoint without its port, which differs for each connection of a TCP peer.
fn peer(endpoint: &str) -> Box<str> {
    match endpoint.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host.into(),
        _ => endpoint.into(),
    }
}

#[cfg(test)]
mod tests;
