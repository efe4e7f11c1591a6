//! Where what cannot be processed goes: a folder, or a topic or queue by its URI.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use baler_analysis::quarantine::{MediumQuarantine, Poison, Quarantine};
use baler_connector_file::QuarantineFolder;

use crate::args::QuarantineArgs;
use crate::endpoint;
use crate::exit::Failure;

/// A quarantine that several workers share.
#[derive(Clone)]
pub(crate) struct SharedQuarantine(Arc<Mutex<Box<dyn Quarantine>>>);

/// The quarantine that `--quarantine` names, if it is given: a folder, or the URI of a medium, which
/// then has `patience` to confirm each chunk.
///
/// # Errors
///
/// The URI is wrong, or a medium is to be limited.
pub(crate) fn optional(
    args: &QuarantineArgs,
    patience: Duration,
) -> Result<Option<SharedQuarantine>, Failure> {
    let Some(place) = args.quarantine.as_deref() else {
        return Ok(None);
    };
    let quarantine: Box<dyn Quarantine> = if endpoint::is_uri(place) {
        if let Some(bytes) = args.quarantine_bytes {
            return Err(Failure::configuration(format!(
                "--quarantine-bytes {bytes} is the limit of a folder, --quarantine {} is a medium: \
                 limit it there",
                endpoint::shown(place)
            )));
        }
        let writer = endpoint::writer(place)?.writer;
        Box::new(MediumQuarantine::new(writer).with_patience(patience))
    } else {
        let mut folder = QuarantineFolder::new(place);
        if let Some(bytes) = args.quarantine_bytes {
            folder = folder.limited_to(u64::try_from(bytes.get()).unwrap_or(u64::MAX));
        }
        Box::new(folder)
    };
    let shared = SharedQuarantine(Arc::new(Mutex::new(quarantine)));
    Ok(Some(shared))
}

impl Quarantine for SharedQuarantine {
    fn put_aside(&mut self, poison: Poison<'_>) -> io::Result<()> {
        let mut quarantine = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        quarantine.put_aside(poison)
    }

    fn put_group_aside(&mut self, group: &[Poison<'_>]) -> Vec<io::Result<()>> {
        let mut quarantine = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        quarantine.put_group_aside(group)
    }
}
