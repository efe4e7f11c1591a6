//! The crate `tracing`.

use baler_rig::monitored;
use baler_rig::overhead::{Alone, End, Outer, Running, Variant};
use tracing::Subscriber;
use tracing::span::{Attributes, Id};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::{Context, SubscriberExt as _};
use tracing_subscriber::registry::LookupSpan;

use super::counter;
use crate::failure::Failure;

pub(super) const VARIANTS: &[Variant] = &[
    Variant {
        name: "tracing",
        about: "tracing #[instrument] without a subscriber",
        set_up: |_| Ok(Box::new(Alone(instrumented))),
    },
    Variant {
        name: "tracing-registry",
        about: "tracing #[instrument] with tracing-subscriber's registry and a layer that times spans \
                and discards them",
        set_up: |_| {
            let subscriber = tracing_subscriber::registry().with(Timing);
            tracing::subscriber::set_global_default(subscriber)
                .map_err(Failure::cannot("set a subscriber"))?;
            Ok(Box::new(Registry))
        },
    },
];

monitored! { #[tracing::instrument(skip_all)] fn instrumented {} }

/// What a layer that measures durations has to do: remember the beginning with the span.
struct Timing;

struct Began(u64);

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Timing {
    fn on_new_span(&self, _attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        if let Some(span) = context.span(id) {
            span.extensions_mut()
                .insert(Began(baler_rig::overhead::cycles()));
        }
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let Some(span) = context.span(&id) else {
            return;
        };
        if let Some(Began(began)) = span.extensions().get::<Began>() {
            std::hint::black_box(baler_rig::overhead::cycles().wrapping_sub(*began));
            counter::one_arrived();
        }
    }
}

struct Registry;

impl Running for Registry {
    fn outer(&self) -> Outer {
        instrumented
    }

    fn finish(self: Box<Self>, calls: u64) -> Result<End, Failure> {
        counter::end(calls)
    }
}
