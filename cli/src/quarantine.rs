//! Where what cannot be processed goes: a folder, or a topic or queue by its URI.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use baler_analysis::quarantine::{Folder, MediumQuarantine, Poison, Quarantine};

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
/// The URI is wrong.
pub(crate) fn optional(
    place: Option<&str>,
    patience: Duration,
) -> Result<Option<SharedQuarantine>, Failure> {
    let Some(place) = place else {
        return Ok(None);
    };
    let quarantine: Box<dyn Quarantine> = if endpoint::is_uri(place) {
        let writer = endpoint::writer(place)?.writer;
        Box::new(MediumQuarantine::new(writer).with_patience(patience))
    } else {
        Box::new(Folder::new(place))
    };
    let shared = SharedQuarantine(Arc::new(Mutex::new(quarantine)));
    Ok(Some(shared))
}

impl Quarantine for SharedQuarantine {
    fn put_aside(&mut self, poison: Poison<'_>) -> io::Result<()> {
        let mut quarantine = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        quarantine.put_aside(poison)
    }
}
