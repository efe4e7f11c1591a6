//! Record types that a build script made of `.irl` files.

/// Includes the record types that `baler_irl::build::compile` wrote in the build script: a module
/// for each package, such as `com_shop` for `com.shop`.
///
/// ```ignore
/// baler::include_irl!();
///
/// controller.emit(&com_shop::Order { id: 1, ..Default::default() });
/// ```
///
/// The crate `examples/schemas` shows the whole.
#[macro_export]
macro_rules! include_irl {
    () => {
        include!(concat!(env!("OUT_DIR"), "/irl/mod.rs"));
    };
}
