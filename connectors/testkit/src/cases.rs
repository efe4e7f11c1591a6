//! The cases of the contract, each a function over a [`TestMedium`](crate::TestMedium).

pub mod closing;
pub mod failing;
pub mod reading;
pub mod writing;

use std::slice;
use std::time::Duration;

use crate::contract::TestMedium;
use crate::pump::Pump;
use crate::tap::{Tap, drive};

/// The time by which a busy machine may miss a deadline.
const GRACE: Duration = Duration::from_secs(3);

/// The number of readers or writers of one medium that a case opens.
const SEVERAL: usize = 4;

/// Opens a reader that acknowledges everything, and a writer.
fn pair<M: TestMedium>(medium: &mut M) -> (Pump, Tap) {
    let tap = Tap::new(medium.reader());
    let pump = Pump::open(medium.writer());
    (pump, tap)
}

/// Opens a medium with a writer, and the readers of [`drains`].
fn opened<M: TestMedium>() -> (M, Pump, Vec<Tap>) {
    let mut medium = M::fresh();
    let taps = drains(&mut medium);
    let pump = Pump::open(medium.writer());
    (medium, pump, taps)
}

/// Drives until every chunk is offered and answered.
fn confirm_all(what: &str, pump: &mut Pump, taps: &mut [Tap]) {
    drive(what, slice::from_mut(pump), taps, |pumps, _| {
        pumps.iter().all(Pump::is_done)
    });
}

/// Returns the readers that a medium needs while a case tests only a writer.
fn drains<M: TestMedium>(medium: &mut M) -> Vec<Tap> {
    if medium.is_readable() {
        vec![Tap::new(medium.reader())]
    } else {
        Vec::new()
    }
}
