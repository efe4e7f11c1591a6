//! The `#[probe]` attribute, re-exported as `baler_monitoring::probe`.
//!
//! tokens -> `options` and `function` (what was written) -> `signature` (Kieker's text form) ->
//! `expand` (the function with its probe).
//!
//! The expansion names nothing but `baler_monitoring::__private`; without the feature `enable` the
//! function is checked and then handed back as it was written.

mod expand;
mod function;
mod options;
mod signature;

use proc_macro::TokenStream;

/// Records each call of a function or method as one `OperationExecutionRecord`, logged when the call
/// ends: by its last expression, by `return` or `?`, by a panic that unwinds.
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
/// While monitoring is off a call costs one relaxed load; without the feature `enable` of
/// `baler-monitoring` the function stays as it was written.
///
/// # Options
///
/// - `name = "…"`: the operation's signature, in place of the one below.
/// - `crate = path`: where `baler_monitoring` is, for crates that re-export it.
///
/// # Signature
///
/// `public Result shop.till.Till.order(str, u32)`, the form of Kieker, so that its tools and patterns
/// work:
///
/// - `public` for `pub`, and no modifier else;
/// - the types of the result and of the arguments as written, without generic arguments, references
///   and lifetimes; slices and arrays are `u8[]`, no result is `void`, a tuple is `tuple`;
/// - module, type and name of the function, found at its first recorded call.
///   A provided method of a trait belongs to the trait, and so does a method of an implementation for
///   a type without a name, such as a tuple, a slice or any type at all.
///
/// # Trace
///
/// Calls of probed functions on the same thread nest; see `baler_monitoring::TraceContext` for trace id,
/// eoi and ess, and for traces that go on in other threads and tasks.
///
/// # Asynchronous functions
///
/// A call begins with the first poll and ends when the body is done; the time between polls counts.
/// Its trace follows it from thread to thread.
/// A call whose future is dropped earlier ends there and is recorded as well.
/// Kieker's record has no mark for that, nor for a panic: such a record looks like any other.
/// What the destructors of a cancelled body call is recorded in the trace of whoever dropped it.
///
/// A function that is not `async` but *returns* a future ends when it returns, before the future has run.
/// This is so for `fn f() -> impl Future`, for `fn f() -> Pin<Box<dyn Future>>` and for methods in an
/// `#[async_trait]`, which become the latter before this attribute sees them.
/// Put the probe on an `async fn` that does the work, and call that:
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
/// # What cannot be measured
///
/// `const fn` (there is no clock at compile time), naked functions (they hold no code but their own),
/// declarations without a body, and items that are no functions; the compiler says so.
/// A function that never returns and never unwinds (it aborts or exits the process) leaves no record.
#[proc_macro_attribute]
pub fn probe(options: TokenStream, item: TokenStream) -> TokenStream {
    let original = item.clone();
    let expansion = syn::parse::<options::Options>(options)
        .and_then(|options| Ok((options, syn::parse::<function::Function>(item)?)))
        .map(|(options, function)| expand::expand(&options, &function));
    match expansion {
        Ok(expanded) if cfg!(feature = "enable") => expanded.into(),
        Ok(_) => original,
        // The function stays, so that its callers do not add errors of their own.
        Err(error) => {
            let mut tokens = TokenStream::from(error.into_compile_error());
            tokens.extend(original);
            tokens
        }
    }
}
