use super::*;

fn generation(log: &str, name: &str) -> Option<Age> {
    let names = log_names_of(name).into_iter();
    names.filter(|it| it.log == log).map(|it| it.age).next()
}

#[test]
fn generations_of_a_log_have_a_number_or_a_date() {
    for (name, age) in [
        ("app.log", Age::Live),
        ("app.log.1", Age::Number(1)),
        ("app.log.12.gz", Age::Number(12)),
        ("app.log.gz", Age::Number(0)),
        ("app.log-20261126", Age::Date(vec![2026, 11, 26])),
        (
            "app.log.20261126-120000",
            Age::Date(vec![2026, 11, 26, 120_000]),
        ),
        (
            "app.log-20261126120000.zst",
            Age::Date(vec![2026, 11, 26, 12, 0, 0]),
        ),
        ("app.log.2026-11-26-10", Age::Date(vec![2026, 11, 26, 10])),
        ("app.log.2026-11-26.3", Age::Date(vec![2026, 11, 26, 3])),
        ("app.log-1795694400", Age::Date(vec![1_795_694_400])),
        ("app-20261126.log", Age::Date(vec![2026, 11, 26])),
        ("app-11-26-2026-2.log.gz", Age::Date(vec![2026, 11, 26, 2])),
        ("app.2026-11.log", Age::Date(vec![2026, 11])),
        ("app.1.log", Age::Number(1)),
    ] {
        assert_eq!(generation("app.log", name), Some(age), "{name}");
    }
}

#[test]
fn other_files_beside_a_log_are_no_generations() {
    for name in [
        "app.log.audit",
        "app.log.position",
        "app.log.position.123.part",
        "app.log2",
        "app.log.1.bak",
        "app.log.",
        "app-2.log",
        "app.log-1",
        "app_error.log",
        "app.log.1.2",
        ".app.log.1",
        "1",
    ] {
        assert_eq!(generation("app.log", name), None, "{name}");
    }
}
