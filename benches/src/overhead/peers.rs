//! Rival libraries with the same work as Baler's probe: two clock reads, and storing the result.
//!
//! Each is set up as its documentation recommends, with an exporter that counts and discards.

mod counter;
mod fastrace;
mod opentelemetry;
mod tracing;

use baler_rig::overhead::Variant;

/// All of them.
pub(super) fn variants() -> Vec<Variant> {
    [
        fastrace::VARIANTS,
        tracing::VARIANTS,
        opentelemetry::VARIANTS,
    ]
    .concat()
}
