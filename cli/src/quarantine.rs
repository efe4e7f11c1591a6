//! Where what cannot be processed goes: a folder, or a topic or queue by its URI.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use baler_analysis::quarantine::{Attempts, MediumQuarantine, Poison, Quarantine};
use baler_connector_file::QuarantineFolder;
use baler_relay::{Unfit, without_quarantine};

use crate::args::QuarantineArgs;
use crate::endpoint;
use crate::exit::{Code, Failure};

/// Where what cannot be processed goes, for several workers. It says once why, for each peer and
/// reason, whether there is a quarantine or not.
#[derive(Clone)]
pub(crate) struct SharedQuarantine(Arc<Mutex<Inner>>);

struct Inner {
    /// Without one, the bytes are discarded.
    place: Option<Box<dyn Quarantine>>,
    reasons: Reasons,
}

/// The place that `--quarantine` names, if it is given: a folder, or the URI of a medium, which then
/// has `patience` to confirm each chunk.
///
/// # Errors
///
/// The URI is wrong, or a medium is to be limited.
pub(crate) fn shared(
    args: &QuarantineArgs,
    patience: Duration,
) -> Result<SharedQuarantine, Failure> {
    let inner = Inner {
        place: place(args, patience)?,
        reasons: Reasons::default(),
    };
    Ok(SharedQuarantine(Arc::new(Mutex::new(inner))))
}

/// Counts which chunks crash their consumer, where the quarantine is a folder that can hold the count.
///
/// # Errors
///
/// The folder cannot be written.
pub(crate) fn attempts(args: &QuarantineArgs) -> Result<Option<Attempts>, Failure> {
    let folder = args.quarantine.as_deref();
    let Some(folder) = folder.filter(|place| !endpoint::is_uri(place)) else {
        return Ok(None);
    };
    let opened = Attempts::open(Path::new(folder));
    let failed = |error| Failure::new(Code::Output, format!("--quarantine {folder}: {error}"));
    opened.map(Some).map_err(failed)
}

fn place(
    args: &QuarantineArgs,
    patience: Duration,
) -> Result<Option<Box<dyn Quarantine>>, Failure> {
    let Some(place) = args.quarantine.as_deref() else {
        return Ok(None);
    };
    if endpoint::is_uri(place) {
        if let Some(bytes) = args.quarantine_bytes {
            return Err(Failure::configuration(format!(
                "--quarantine-bytes {bytes} is the limit of a folder, --quarantine {} is a medium: \
                 limit it there",
                endpoint::shown(place)
            )));
        }
        let writer = endpoint::writer(place)?.writer;
        let medium = MediumQuarantine::new(writer).with_patience(patience);
        return Ok(Some(Box::new(medium)));
    }
    let mut folder = QuarantineFolder::new(place);
    if let Some(bytes) = args.quarantine_bytes {
        folder = folder.limited_to(u64::try_from(bytes.get()).unwrap_or(u64::MAX));
    }
    Ok(Some(Box::new(folder)))
}

impl SharedQuarantine {
    /// Puts aside what a relay cannot pass on. Without a place, a chunk that only the sink refuses
    /// is not discarded.
    pub(crate) fn put_unfit_aside(&self, unfit: Unfit<'_>) -> io::Result<()> {
        let poison = Poison {
            bytes: unfit.bytes,
            origin: unfit.origin,
            meta: unfit.meta,
            reason: unfit.reason,
        };
        let mut inner = self.lock();
        inner.reasons.tell(&poison);
        match &mut inner.place {
            Some(place) => place.put_aside(poison),
            None => without_quarantine(unfit),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Quarantine for SharedQuarantine {
    fn put_aside(&mut self, poison: Poison<'_>) -> io::Result<()> {
        let mut inner = self.lock();
        inner.reasons.tell(&poison);
        match &mut inner.place {
            Some(place) => place.put_aside(poison),
            None => Ok(()),
        }
    }

    fn put_group_aside(&mut self, group: &[Poison<'_>]) -> Vec<io::Result<()>> {
        let mut inner = self.lock();
        group.iter().for_each(|poison| inner.reasons.tell(poison));
        match &mut inner.place {
            Some(place) => place.put_group_aside(group),
            None => group.iter().map(|_| Ok(())).collect(),
        }
    }
}

/// Why bytes could not be processed: logged once for each peer and kind of reason, then counted.
#[derive(Debug, Default)]
struct Reasons {
    /// By peer and kind.
    counts: HashMap<(Box<str>, String), u64>,
    /// Those beyond [`Reasons::MAX`].
    others: u64,
}

impl Reasons {
    /// How many are told apart.
    const MAX: usize = 64;

    fn tell(&mut self, poison: &Poison<'_>) {
        let key = (peer(&poison.origin.endpoint), kind(poison.reason));
        if let Some(count) = self.counts.get_mut(&key) {
            *count = count.saturating_add(1);
        } else if self.counts.len() < Self::MAX {
            let (origin, reason) = (poison.origin.to_string(), poison.reason);
            tracing::warn!(origin, reason, "bytes cannot be processed");
            self.counts.insert(key, 1);
        } else {
            self.others = self.others.saturating_add(1);
        }
    }
}

impl Drop for Reasons {
    fn drop(&mut self) {
        let again = self.counts.iter().filter(|(_, count)| **count > 1);
        for ((peer, kind), count) in again {
            tracing::warn!(peer, kind, count, "bytes could not be processed");
        }
        if self.others > 0 {
            let count = self.others;
            tracing::warn!(count, "bytes of other peers could not be processed");
        }
    }
}

/// An endpoint without the port, which is another for each connection of a TCP peer.
fn peer(endpoint: &str) -> Box<str> {
    match endpoint.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host.into(),
        _ => endpoint.into(),
    }
}

/// A reason without its figures, which differ from chunk to chunk.
fn kind(reason: &str) -> String {
    const MAX_WORDS: usize = 50;
    let words = reason.split_whitespace();
    let words = words.filter(|word| !word.contains(|char: char| char.is_ascii_digit()));
    words.take(MAX_WORDS).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use baler_common::transport::Origin;

    use super::*;

    fn tell(reasons: &mut Reasons, endpoint: &str, reason: &str) {
        let origin = Origin {
            endpoint: endpoint.into(),
            lane: "a".into(),
            position: 1,
        };
        reasons.tell(&Poison {
            bytes: b"x",
            origin: &origin,
            meta: None,
            reason,
        });
    }

    #[test]
    fn reasons_are_told_apart_by_peer_and_kind_and_bounded() {
        let mut reasons = Reasons::default();
        for port in 1_000..1_100 {
            let reason = format!("byte {port}: the length {port} is wrong");
            tell(&mut reasons, &format!("tcp://10.0.0.1:{port}"), &reason);
        }
        tell(
            &mut reasons,
            "tcp://10.0.0.2:1",
            "byte 5: the length 5 is wrong",
        );
        tell(&mut reasons, "tcp://10.0.0.2:2", "the magic is wrong");
        let mut counts: Vec<_> = reasons.counts.values().copied().collect();
        counts.sort_unstable();
        assert_eq!(counts, [1, 1, 100]);
        for host in 0..1_000 {
            tell(&mut reasons, &format!("kafka://h:9092/topic-{host}"), "no");
        }
        assert_eq!(reasons.counts.len(), Reasons::MAX);
        let told: u64 = reasons.counts.values().sum();
        assert_eq!(told + reasons.others, 1_102);
    }
}
