use baler_connector_kieker::pattern::Dialect;

use super::*;

/// There is one registry in a process, and `cargo test` runs many tests in one.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn switch(is_recording: bool) {
    let patterns = Arc::new(PatternList::new());
    let key = u64::from(is_recording) << 30;
    set_recording(key, &patterns, Arc::default(), None);
}

#[test]
fn sites_are_numbered_once_and_switched_together() {
    static FIRST: Site = Site::named("registry.first()");
    static SECOND: Site = Site::named("registry.second()");
    let _alone = alone();
    switch(false);
    assert!(FIRST.is_unknown());
    assert_eq!(FIRST.active(), None);
    assert!(!FIRST.is_unknown());
    let number = FIRST.number().unwrap();

    switch(true);
    assert_eq!(FIRST.active(), Some(number));
    let second = SECOND.active().unwrap();
    assert_ne!(second, number);
    assert_eq!(signature(number).unwrap().as_str(), "registry.first()");
    assert_eq!(signature(second).unwrap().as_str(), "registry.second()");

    switch(false);
    assert_eq!(SECOND.active(), None);
    switch(true);
    assert_eq!(SECOND.active(), Some(second));
}

#[test]
fn a_site_entered_by_the_registry_itself_waits_for_another_call() {
    static SITE: Site = Site::named("registry.within()");
    let _alone = alone();
    switch(true);
    let within = with_registry(|_| {
        assert_eq!(SITE.active(), None);
        assert!(SITE.is_unknown());
    });
    assert_eq!(within, Some(()));
    assert!(SITE.active().is_some());
}

#[test]
fn a_site_that_was_only_sampled_never_takes_the_fast_path_again() {
    static SITE: Site = Site::named("registry.sampled()");
    static FAST: Site = Site::named("registry.recorded()");
    static HIDDEN: Site = Site::named("registry.hidden()").unsampled();
    let _alone = alone();
    let all = Arc::new(PatternList::new());
    let (none, errors) = PatternList::parse("- registry.sampled()", Dialect::Strict);
    assert_eq!(errors, []);
    let none = Arc::new(none);
    let set = |key, patterns: &Arc<PatternList>, is_sampled: bool| {
        let sampled = is_sampled.then(|| Arc::clone(&all));
        set_recording(key, patterns, Arc::default(), sampled);
        [&SITE, &FAST, &HIDDEN].map(Site::state)
    };
    // As a controller with ticks has it.
    let tag = 1 << 30;
    let key = (1 << 32) | u64::from(tag);
    set(key, &all, false);
    for site in [&SITE, &FAST, &HIDDEN] {
        assert!(site.active().is_some());
    }
    let both = RECORDED_AND_SAMPLED;
    assert_eq!(set(key, &all, false), [tag; 3]);
    assert_eq!(set(key, &all, true), [both, both, tag]);
    assert_eq!(set(key, &all, false), [tag; 3]);
    assert_eq!(set(key, &none, true), [SAMPLED, both, tag]);
    assert_eq!(set(0, &none, true), [OFF; 3]);
    assert_eq!(set(key, &all, false), [RECORDED_SLOWLY, tag, tag]);
    assert_eq!(set(key, &none, false), [OFF, tag, tag]);
}

#[test]
#[cfg(feature = "sampling")]
fn hybrid_monitoring_allows_each_site_its_part() {
    static SITE: Site = Site::named("registry.part()");
    static LATER: Site = Site::named("registry.later()");
    let _alone = alone();
    let all = Arc::new(PatternList::new());
    let key = (1 << 32) | (1 << 30);
    set_recording(key, &all, Arc::default(), Some(Arc::clone(&all)));
    assert!(SITE.active().is_some());
    set_parts(&[], Part::Published);
    assert_eq!(LATER.active(), None);
    assert_eq!([&SITE, &LATER].map(Site::state), [SAMPLED; 2]);
    let known = LATER.number().unwrap().index();
    for (part, state) in [
        (Part::Recorded, RECORDED_AND_SAMPLED),
        (Part::Off, OFF),
        (Part::Published, SAMPLED),
    ] {
        set_parts(&vec![Part::Published; known], part);
        assert_eq!([&SITE, &LATER].map(Site::state), [SAMPLED, state]);
    }
    set_parts(&[], Part::Recorded);
    set_recording(key, &all, Arc::default(), None);
    assert_eq!([&SITE, &LATER].map(Site::state), [RECORDED_SLOWLY; 2]);
}
