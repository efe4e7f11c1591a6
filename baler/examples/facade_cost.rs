//! Calls a probe and `emit`, through this crate (`facade_cost facade`) and through `baler-monitoring`
//! (`facade_cost monitoring`). A test counts the instructions of both.

#![expect(clippy::print_stdout, reason = "an example shows what it did")]

use std::hint::black_box;
use std::time::Duration;

use baler::{Controller, Record};

/// The counted calls. Their records fit into the queue, so that no call waits.
const CALLS: u64 = 2_000;

#[derive(Record)]
struct Order {
    id: u64,
}

/// The same calls by the names of one of the two crates.
macro_rules! calls {
    ($name:ident, $krate:ident, $controller:ty) => {
        mod $name {
            use super::{CALLS, Order, black_box};

            #[$krate::probe]
            fn probed(id: u64) -> u64 {
                black_box(id)
            }

            #[inline(never)]
            pub(super) fn counted_calls(controller: &$controller) {
                for id in 0..CALLS {
                    probed(id);
                    controller.emit(&Order { id });
                    $krate::emit(&Order { id });
                }
            }
        }
    };
}

calls!(facade, baler, baler::Controller);
calls!(monitoring, baler_monitoring, baler_monitoring::Controller);

fn main() -> Result<(), baler::Error> {
    let by_facade = std::env::args().nth(1).is_none_or(|it| it == "facade");
    let controller = Controller::to("null:")?;
    controller.install();
    match by_facade {
        true => facade::counted_calls(&controller),
        false => monitoring::counted_calls(&controller),
    }
    println!("{}", controller.shutdown(Duration::from_secs(5)));
    Ok(())
}
