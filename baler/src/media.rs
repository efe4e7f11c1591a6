//! The media and the containers of this build.

use baler_common::container::{ChunkDecoder, Limits};
use baler_common::transport::Media;
#[cfg(feature = "amqp")]
use baler_common::transport::Medium;
use baler_connector_kieker::container::KiekerDeserializer;
use baler_connector_kieker::types::WELL_KNOWN_TYPES;

/// Returns a decoder of the containers of this build: native chunks, and Kieker's.
///
/// A program adds containers of its own by [`ChunkDecoder::with_deserializer`].
pub fn decoder(limits: Limits) -> ChunkDecoder {
    ChunkDecoder::new(limits)
        .with_well_known_types(&WELL_KNOWN_TYPES)
        .with_deserializer(KiekerDeserializer::default())
}

/// Returns the media of this build, according to the features of this crate.
///
/// A program adds media of its own by [`Media::with`], and gives the result to
/// [`ControllerConfig::media`](crate::ControllerConfig::media) and
/// [`ConsumerConfig::media`](crate::ConsumerConfig::media).
pub fn media() -> Media {
    let media = Media::default().with(baler_connector_null::MEDIUM);
    #[cfg(feature = "file")]
    let media = media.with(baler_connector_file::MEDIUM);
    #[cfg(not(feature = "file"))]
    let media = media.without(&["file"], &lacks("file"));
    #[cfg(feature = "tcp")]
    let media = media.with(baler_connector_tcp::MEDIUM);
    #[cfg(not(feature = "tcp"))]
    let media = media.without(&["tcp"], &lacks("tcp"));
    #[cfg(not(feature = "tls"))]
    let media = media.without(&["tcp+tls"], &lacks("tls"));
    #[cfg(feature = "amqp")]
    let media = media.with(AMQP);
    #[cfg(not(feature = "amqp"))]
    let media = media.without(&["amqp", "amqps"], &lacks("amqp"));
    #[cfg(feature = "kafka")]
    let media = media
        .with(baler_connector_kafka::MEDIUM)
        .with(baler_connector_kafka::EMBEDDED_MEDIUM);
    #[cfg(not(feature = "kafka"))]
    let media = media.without(&["kafka", "kafka+mock"], &lacks("kafka"));
    #[cfg(feature = "kieker")]
    let media = media
        .with(baler_connector_kieker::MEDIUM)
        .with(baler_connector_kieker::LOG_MEDIUM);
    #[cfg(not(feature = "kieker"))]
    let media = media.without(&["kieker+tcp", "kieker-log"], &lacks("kieker"));
    #[cfg(feature = "lines")]
    let media = media.with(baler_connector_file::lines::MEDIUM);
    #[cfg(not(feature = "lines"))]
    let media = media.without(&["jsonl", "text"], &lacks("lines"));
    #[cfg(feature = "otlp")]
    let media = media.with(baler_connector_otlp::MEDIUM);
    #[cfg(not(feature = "otlp"))]
    let media = media.without(
        &[
            "otlp",
            "otlp+file",
            "otlp+grpc",
            "otlp+http",
            "otlp+https",
            "otlp+tls",
            "otlp+unix",
        ],
        &lacks("otlp"),
    );
    media
}

/// RabbitMQ.
#[cfg(all(feature = "amqp", not(feature = "kieker")))]
const AMQP: Medium = baler_connector_amqp::MEDIUM;

/// RabbitMQ, also for the messages of Kieker's `AmqpWriter`.
#[cfg(all(feature = "amqp", feature = "kieker"))]
const AMQP: Medium = {
    use baler_connector_amqp::MEDIUM;
    use baler_connector_kieker::messages;
    Medium {
        writer: |uri| messages::writer(uri, &MEDIUM),
        receiver: |uri, follow| messages::receiver(uri, follow, &MEDIUM),
        browser: Some(|uri, browse| messages::browser(uri, browse, &MEDIUM)),
        ..MEDIUM
    }
};

/// Names a missing feature, and the command that adds it: for an application, and for the program
/// `baler`, which also uses this list.
#[cfg(not(all(
    feature = "amqp",
    feature = "file",
    feature = "kafka",
    feature = "kieker",
    feature = "lines",
    feature = "otlp",
    feature = "tcp",
    feature = "tls"
)))]
fn lacks(feature: &str) -> String {
    format!(
        "needs the feature {feature}, which this build lacks; an application gets it by cargo add \
         baler --features {feature}, the program by cargo build --release --package baler-cli \
         --features {feature}"
    )
}
