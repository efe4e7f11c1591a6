use super::*;

/// There is one registry in a process, and `cargo test` runs many tests in one.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn switch(is_recording: bool) {
    let patterns = Arc::new(PatternList::new());
    set_recording(u64::from(is_recording), &patterns, Arc::default());
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
