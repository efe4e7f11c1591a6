//! Events, within spans and outside.

use tracing::{debug, error, info, info_span, warn};

use super::support::Recording;

#[test]
fn events_name_their_span_and_have_a_type_a_call_site() {
    let recording = Recording::start();
    info_span!("outer").in_scope(|| {
        warn!("low on {}", "tea");
        info!(count = 2_u64, is_last = false, "sold");
        error!(code = 5);
    });
    debug!(target: "shop::till", "closed");
    let records = recording.finish();
    let outer = records.end("outer");
    let events = records.events();
    let texts: Vec<_> = events
        .iter()
        .map(|it| (it.text("level"), it.text("message")))
        .collect();
    assert_eq!(
        texts,
        [
            ("WARN", "low on tea"),
            ("INFO", "sold"),
            ("ERROR", ""),
            ("DEBUG", "closed")
        ]
    );
    for event in &events[..3] {
        assert_eq!((event.trace(), event.id()), (outer.trace(), outer.id()));
        assert_eq!(event.value("traceId"), outer.value("traceId"));
    }
    assert_eq!((events[3].trace(), events[3].id()), (0, 0));
    assert_eq!(events[3].signed("traceId"), -1);
    assert_eq!(events[0].type_name, "baler.EventRecord");
    assert_eq!(events[1].type_name, "it::events::event");
    assert_eq!(events[1].unsigned("count"), 2);
    assert!(events[0].text("name").starts_with("event "));
    assert_eq!(events[3].text("target"), "shop::till");
}

#[test]
fn an_explicit_parent_of_an_event_counts() {
    let recording = Recording::start();
    let parent = info_span!("parent");
    info_span!("current").in_scope(|| {
        info!(parent: &parent, "one");
        info!(parent: None, "two");
    });
    drop(parent);
    let records = recording.finish();
    let parent = records.end("parent").id();
    let ids: Vec<_> = records.events().iter().map(|it| it.id()).collect();
    assert_eq!(ids, [parent, 0]);
}

#[test]
fn nothing_is_recorded_while_the_controller_is_disabled() {
    let recording = Recording::start();
    recording.controller.disable();
    let unrecorded = info_span!("unrecorded").entered();
    info!("unrecorded");
    recording.controller.enable();
    info_span!("child").in_scope(|| info!("recorded"));
    drop(unrecorded);
    let records = recording.finish();
    records.assert_paired();
    let child = records.end("child");
    assert_eq!(child.parent(), 0);
    let events = records.events();
    assert_eq!((events.len(), events[0].id()), (1, child.id()));
}
