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

/// What a deadline may be missed by on a busy machine.
const GRACE: Duration = Duration::from_secs(3);

/// How many readers or writers of one medium a case opens.
const SEVERAL: usize = 4;

/// A reader that acknowledges everything and a writer to it, open.
fn pair<M: TestMedium>(medium: &mut M) -> (Pump, Tap) {
    let tap = Tap::new(medium.reader());
    let pump = Pump::open(medium.writer());
    (pump, tap)
}

/// A medium with an open writer, and the readers of [`drains`].
fn opened<M: TestMedium>() -> (M, Pump, Vec<Tap>) {
    let mut medium = M::fresh();
    let taps = drains(&mut medium);
    let pump = Pump::open(medium.writer());
    (medium, pump, taps)
}

/// Drives until everything is offered and answered.
fn confirm_all(what: &str, pump: &mut Pump, taps: &mut [Tap]) {
    drive(what, slice::from_mut(pump), taps, |pumps, _| {
        pumps.iter().all(Pump::is_done)
    });
}

/// The readers that a medium has while a case looks at a writer only.
fn drains<M: TestMedium>(medium: &mut M) -> Vec<Tap> {
    if medium.is_readable() {
        vec![Tap::new(medium.reader())]
    } else {
        Vec::new()
    }
}
