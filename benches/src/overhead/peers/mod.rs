//! Rival libraries on the work that Baler's probe has: two clock reads, and somewhere to put what
//! was measured.
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
