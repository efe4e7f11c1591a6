//! The macro that records a block.

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
/// The name is a constant, interned once, and stands where the signature of a function would; see
/// [`Guard`](crate::Guard) for what it returns.
/// Kieker's tools understand names of the form `package.Class.operation(Type, Type)`.
///
/// In an asynchronous function the guard must not be held over an `.await`, and the compiler
/// refuses most attempts, for it is not `Send`: make the block an `async fn` with `#[probe]`.
#[macro_export]
macro_rules! enter {
    ($name:expr) => {{
        // Items are not hygienic: the name may be a constant of any name, `SITE` as well.
        static __BALER_SITE: $crate::__private::Site = $crate::__private::Site::named($name);
        __BALER_SITE.enter()
    }};
}
