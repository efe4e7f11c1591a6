//! The macros of Baler: `derive` writes the implementations of record types, `probe` the function
//! with its probe. Applications name them by the crates that re-export them.
//!
//! Each macro exists twice, because its code names either `baler_common` and `baler_monitoring` or
//! the crate `baler`. An application may depend on `baler` alone.

mod derive;
#[cfg(feature = "probe")]
mod probe;

use proc_macro::TokenStream;
use syn::parse_quote;

/// Derives `Record` and `FieldValue` for a struct, and `FieldValue` for an enum without data.
///
/// The trait `baler_common::record::Record` documents the attributes.
#[proc_macro_derive(Record, attributes(record))]
pub fn derive_record(input: TokenStream) -> TokenStream {
    derive::record(input, &parse_quote!(::baler_common))
}

/// Derives `Records` for an enum whose variants hold one record each.
///
/// The trait `baler_common::record::Records` documents it.
#[proc_macro_derive(Records, attributes(record))]
pub fn derive_records(input: TokenStream) -> TokenStream {
    derive::records(input, &parse_quote!(::baler_common))
}

/// `Record`, as the crate `baler` exports it.
#[doc(hidden)]
#[proc_macro_derive(FacadeRecord, attributes(record))]
pub fn derive_facade_record(input: TokenStream) -> TokenStream {
    derive::record(input, &parse_quote!(::baler))
}

/// `Records`, as the crate `baler` exports it.
#[doc(hidden)]
#[proc_macro_derive(FacadeRecords, attributes(record))]
pub fn derive_facade_records(input: TokenStream) -> TokenStream {
    derive::records(input, &parse_quote!(::baler))
}

/// Records each call of a function or method, by default as one `OperationExecutionRecord` at the
/// end of the call: after its last expression, a `return` or `?`, or a panic that unwinds.
///
/// ```
/// use baler_monitoring::probe;
///
/// struct Shop;
///
/// impl Shop {
///     #[probe]
///     pub fn order(&self, item: &str, count: u32) -> Result<u32, std::num::ParseIntError> {
///         let price: u32 = item.parse()?;
///         Ok(self.total(price, count))
///     }
///
///     #[probe(name = "public int legacy.Till.total(int, int)")]
///     fn total(&self, price: u32, count: u32) -> u32 {
///         price * count
///     }
/// }
///
/// #[probe]
/// async fn deliver(shop: &Shop) {
///     let _ = shop.order("12", 3);
/// }
/// ```
///
/// While monitoring is off a call costs one relaxed load. Without the feature `enable` of
/// `baler-monitoring` the function is unchanged.
///
/// # Options
///
/// - `name = "…"`: the operation's signature; replaces the one below.
/// - `record = kind`: the kind of records, see below; by default `operation`.
/// - `full = 1/1000`: in addition to a duration or aggregation, an operation's record of one call
///   in 1,000.
/// - `sample = 1/100`: one call in 100 is recorded, as any kind of record; for the others the probe
///   acts as if it were deactivated.
/// - `histogram`: for an aggregation, see below.
/// - `err`: a returned error fails the operation, see *Events*.
/// - `busy`: for an asynchronous function, also records the time of its polls, see *Asynchronous
///   functions*.
/// - `skip`: no probe; for single functions, impl blocks and modules within a probed block.
/// - `crate = path`: the path of `baler_monitoring`, for crates that re-export it.
///
/// # Records
///
/// | `record =` | of each call | cost |
/// |---|---|---|
/// | `operation` | Kieker's `OperationExecutionRecord`: times and the place in its trace | five words in the thread's queue |
/// | `duration` | KoPeMe's `DurationRecord`: times alone | three words in the thread's queue |
/// | `events` | Kieker's `BeforeOperationEvent`, and `AfterOperationEvent` or `AfterOperationFailedEvent`; of each trace a `TraceMetadata` | four words twice |
/// | `aggregated` | nothing; count, sum, minimum and maximum of many calls in one `AggregatedDurationRecord` | a few additions in a cell of the thread |
///
/// ```
/// # use baler_monitoring::probe;
/// #[probe(record = duration, full = 1/1000)]
/// fn price() {}
///
/// #[probe(record = aggregated, histogram)]
/// fn look_up() {}
///
/// #[probe(sample = 1/100)]
/// fn parse() {}
///
/// #[probe(record = events, err)]
/// fn reserve(item: &str) -> Result<(), std::num::ParseIntError> {
///     item.parse::<u32>().map(drop)
/// }
/// ```
///
/// `full` and `sample` count the calls of each thread separately, from a random one on, so that no
/// threads have to communicate. A recursive function may be recorded at any depth. Calls that are
/// not recorded in full have no place in a trace. Their inner calls are nested in the next call
/// above that has one.
///
/// An aggregation is recorded at every `aggregation_interval` of the controller (1 s), at a flush
/// and at the shutdown. There is a record for each thread and site that was called since the last
/// time. The cell of a sleeping thread is recorded as well, and the next thread continues the cell
/// of an ended one. So the counts add up to the calls exactly. With `histogram` the record also
/// counts durations by the buckets of `LogLinear` (in `baler_common::record::timing`), 16 for each
/// power of two. A call counts on the thread where it ends and under the controller where it began.
///
/// # Events
///
/// With `record = events` one event is recorded when the call begins and another one when it ends,
/// by Kieker's rules. The outermost call begins a trace. Its `TraceMetadata` holds trace id,
/// thread, session, host, parent trace and parent event. The trace's events are numbered from 0
/// without gaps (`orderIndex`). A trace without a parent is its own parent, with the event -1.
///
/// - Events have traces of their own, separate from the traces of executions, as in Kieker
///   (`TraceRegistry` beside `ControlFlowRegistry`).
/// - The last event is an `AfterOperationFailedEvent` in three cases. A panic leaves the call: the
///   cause is `panic: ` and the panic's message, if it is a text. The future of an asynchronous
///   call is dropped before it is done: the cause is `cancelled`. With `err`, the function returns
///   an `Err`: the cause is its text (`Display`). If the body of a function cannot be a closure
///   (`#[track_caller]`, `#[target_feature]`, `-> !`), and for a block, the cause is only `panic`:
///   only the code that catches a panic gets its message, not the values that are dropped on its
///   way. The probe lets the panic continue unchanged, and no hook gets it twice. On a block `err`
///   applies to functions whose result type is called `…Result`. If the attribute is on a function
///   itself, the function must return a `Result`.
/// - Concurrent calls cannot be one sequence. A call in another thread or task, or a call that
///   begins while another call of its caller is still open (`join!`), begins a trace that names its
///   parent.
///
/// # Blocks
///
/// On an impl block, on a trait or on an inline module (`mod name { … }`) it puts a probe with the
/// same options into each function with a body, including functions in nested impl blocks, traits
/// and modules:
///
/// ```
/// # use baler_monitoring::probe;
/// # struct Till;
/// #[probe]
/// impl Till {
///     pub const fn new() -> Self {
///         Self
///     }
///
///     pub fn open(&self) {}
///
///     #[probe(name = "shop.Till.shut()")]
///     pub fn close(&self) {}
///
///     #[probe(skip)]
///     pub fn is_open(&self) -> bool {
///         true
///     }
/// }
/// ```
///
/// - A function with its own attribute uses only the options of that attribute (except `crate`),
///   and `#[probe(skip)]` leaves it out. The name `probe` need not be in scope there.
/// - Not probed are `const fn`, naked functions, declarations, tests (`#[test]`, `#[cfg(test)]`),
///   functions with a probe in a `cfg_attr`, and modules in files of their own.
/// - Code that macros write within the block is not probed: put the attribute into the macro.
/// - An attribute of the block *below* `#[probe]`, such as `#[async_trait]`, sees the functions
///   with their probes, so that asynchronous ones are measured as a whole.
///
/// # Signature
///
/// `public Result shop.till.Till.order(str, u32)`, in Kieker's form, so that its tools and patterns
/// work:
///
/// - `public` for `pub`, and no modifier otherwise;
/// - the types of the result and of the arguments as written, without generic arguments, references
///   and lifetimes; slices and arrays are `u8[]`, no result is `void`, a tuple is `tuple`;
/// - module, type and name of the function, found at its first recorded call. A provided method of
///   a trait belongs to the trait. So does a method of an implementation for a type without a name,
///   such as a tuple, a slice or a generic type.
///
/// # Trace
///
/// Calls of probed functions on the same thread nest. See `baler_monitoring::TraceContext` for
/// trace id, eoi and ess, and for traces that continue in other threads and tasks.
///
/// # Asynchronous functions
///
/// A call begins with the first poll and ends when the body is done; the time between polls counts.
/// Its trace follows it from thread to thread. A call whose future is dropped earlier ends there
/// and is recorded as well. Kieker's record has no mark for this, nor for a panic: such a record
/// looks like any other. With `busy` the record is an `AsyncOperationExecutionRecord` (in
/// `baler_common::record::timing`) instead. It has Kieker's fields, the time inside the polls,
/// their number, and whether the call was cancelled or ended by a panic. It costs two more clock
/// reads a poll. A function that is not `async` is busy all the time and keeps its ordinary record.
/// Calls by the destructors of a cancelled body are recorded in the trace of the thread or task
/// that dropped it.
///
/// A function that is not `async` but *returns* a future ends when it returns, before the future
/// has run. This applies to `fn f() -> impl Future`, to `fn f() -> Pin<Box<dyn Future>>` and to
/// methods in an `#[async_trait]`, which become the latter before this attribute sees them. Put the
/// probe on an `async fn` that does the work, and call it:
///
/// ```
/// # use baler_monitoring::probe;
/// # use std::pin::Pin;
/// fn load(key: u32) -> Pin<Box<dyn Future<Output = u32> + Send>> {
///     #[probe]
///     async fn load(key: u32) -> u32 {
///         key + 1
///     }
///     Box::pin(load(key))
/// }
/// ```
///
/// # Expansion
///
/// The body of a function that is not `async` becomes a closure, if each of its calls makes one
/// record of the kinds `operation`, `duration` and `aggregated`. While nothing is recorded the
/// function is then as fast as without a probe, except for the load. Its behaviour is the same:
/// arguments are dropped in the same order, and borrows and types are those of the function. In a
/// backtrace a closure shows as `{{closure}}` below the function's name, unless it is inlined. With
/// `#[track_caller]` or `#[target_feature]`, and with any other record, it stays a body with a
/// guard in front of it.
///
/// # Restrictions
///
/// A probe is not possible on `const fn` (there is no clock at compile time), naked functions (they
/// hold only their own code), declarations without a body, and items without functions. The
/// compiler reports that. A function that never returns and never unwinds (it aborts or exits the
/// process) makes no record.
#[cfg(feature = "probe")]
#[proc_macro_attribute]
pub fn probe(options: TokenStream, item: TokenStream) -> TokenStream {
    probe::attribute(options, item, None)
}

/// `#[probe]` as the crate `baler` exports it: its expansion names that crate.
#[cfg(feature = "probe")]
#[doc(hidden)]
#[proc_macro_attribute]
pub fn facade_probe(options: TokenStream, item: TokenStream) -> TokenStream {
    let krate = parse_quote!(::baler::monitoring);
    probe::attribute(options, item, Some(krate))
}

/// The guard of `enter!` with options: `[crate] [name] options`.
#[cfg(feature = "probe")]
#[doc(hidden)]
#[proc_macro]
pub fn enter_with_options(input: TokenStream) -> TokenStream {
    probe::guard(input)
}
