use super::*;

#[test]
fn names_follow_the_conventions_of_prometheus() {
    for metric in ALL {
        let name = metric.name;
        assert_eq!(
            name.ends_with("_total"),
            metric.kind == Kind::Counter,
            "{name}: counters, and only they, end with _total"
        );
        assert!(
            name.starts_with("baler_") || name.starts_with("process_"),
            "{name}"
        );
        assert!(metric.help.ends_with('.'), "{name}: {}", metric.help);
    }
    let mut names: Vec<_> = ALL.iter().map(|metric| metric.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), ALL.len());
}
