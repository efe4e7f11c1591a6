//! Probes: they record the calls of functions and blocks.
//!
//! [`Site`] (one a call site) -> [`Guard`] or [`AsyncCall`] (one a call) -> an operation execution record
//! in the queue.

mod aggregate;
mod busy;
mod call;
mod events;
mod path;
mod published;
mod record;
mod registry;
mod site;

pub use aggregate::{AggregatedGuard, CellSlot};
pub(crate) use aggregate::{CallTotals, take_all};
#[cfg(unix)]
pub(crate) use aggregate::{CellsHold, hold_cells};
#[cfg(feature = "sampling")]
pub(crate) use call::call_for_calibration;
pub use call::{AsyncCall, DurationGuard, Guard, never_called, run};
pub use events::{EventGuard, run_events};
#[cfg(feature = "sampling")]
pub(crate) use published::count_calls;
#[cfg(feature = "sampling")]
pub(crate) use record::read_marked;
pub(crate) use record::{no_session, record_parent, signature};
#[cfg(unix)]
pub(crate) use registry::RegistryHold;
#[cfg(feature = "sampling")]
pub(crate) use registry::{Part, set_parts, sites};
pub(crate) use registry::{hold_registry, set_recording, signatures};
pub(crate) use site::KIND_BITS;
pub use site::{Site, Turns};

/// Records the rest of the block as a call of the operation with this name.
///
/// ```
/// # fn pack() {}
/// fn ship() {
///     {
///         let _probe = baler_monitoring::enter!("warehouse.pack()");
///         pack();
///     } // The call ends here.
///     // …
/// }
/// ```
///
/// The name is a constant, interned once, and takes the place of a function's signature. See
/// [`Guard`](crate::Guard) for the returned value. Kieker's tools understand names of the form
/// `package.Class.operation(Type, Type)`.
///
/// The options of [`#[probe]`](macro@crate::probe) may follow the name, with the same meaning (they
/// need the feature `macros`): `record = operation`, `duration`, `aggregated` or `events`,
/// `full = 1/n`, `sample = 1/n` and `histogram`. With an option the guard has another type. With
/// `record = events` and no `sample` it is an [`EventGuard`](crate::EventGuard), which can record an
/// error:
///
/// ```
/// # fn pack() -> Result<(), std::num::ParseIntError> { "1".parse::<u32>().map(drop) }
/// fn ship() {
///     let _probe = baler_monitoring::enter!("warehouse.ship()", record = duration, full = 1/1000);
///     let mut probe = baler_monitoring::enter!("warehouse.pack()", record = events);
///     if let Err(error) = pack() {
///         probe.fail(error);
///     }
/// }
/// ```
///
/// In an asynchronous function the guard must not be held over an `.await`. The compiler refuses
/// most attempts, because the guard is not `Send`. Make the block an `async fn` with `#[probe]`.
#[macro_export]
macro_rules! enter {
    ($name:expr $(,)?) => {{
        // Items are not hygienic: the name may be a constant of any name, `SITE` as well.
        static __BALER_SITE: $crate::__private::Site = $crate::__private::Site::named($name);
        __BALER_SITE.enter()
    }};
    ($name:expr, $($options:tt)+) => {
        $crate::__enter_with_options!([$crate] [$name] $($options)+)
    };
}

/// The same code reads these options and the options of `#[probe]`.
#[doc(hidden)]
#[macro_export]
#[cfg(not(feature = "macros"))]
macro_rules! __enter_with_options {
    ($($input:tt)*) => {
        ::core::compile_error!(
            "the options of `enter!` need the feature `macros` of `baler-monitoring`"
        )
    };
}
