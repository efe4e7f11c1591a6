//! The cases of the contract, each a function over a [`Medium`](crate::Medium).

pub mod closing;
pub mod failing;
pub mod reading;
pub mod writing;

use std::time::Duration;

use crate::medium::{Medium, skip};
use crate::pump::Pump;
use crate::tap::Tap;

/// What a deadline may be missed by on a busy machine.
const GRACE: Duration = Duration::from_secs(3);

/// Whether the condition holds; says that the case is skipped if it does not.
fn applies<M: Medium>(case: &str, condition: bool, why: &str) -> bool {
    if !condition {
        skip(case, std::any::type_name::<M>(), why);
    }
    condition
}

/// Whether what is written can be read.
fn is_readable<M: Medium>(case: &str, medium: &M) -> bool {
    applies::<M>(case, medium.support().readers > 0, "nothing can be read")
}

/// A reader that acknowledges everything and a writer to it, open.
fn pair<M: Medium>(medium: &mut M) -> (Pump, Tap) {
    let tap = Tap::new(medium.reader());
    let pump = Pump::open(medium.writer());
    (pump, tap)
}

/// The readers that a medium has while a case looks at a writer only.
fn drains<M: Medium>(medium: &mut M) -> Vec<Tap> {
    let readable = medium.support().readers > 0;
    readable
        .then(|| Tap::new(medium.reader()))
        .into_iter()
        .collect()
}
