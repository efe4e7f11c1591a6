//! Tests of the text on the screen.

use std::time::Duration;

use super::scrape::Snapshot;
use super::screen::Screen;
use super::view::{COUNTED, NOW, View};
use crate::http_client::base_url;

/// Returns the snapshot of a sending process.
fn sending(delivered: u64, state: &str, started: u64) -> Snapshot {
    let is = |name| u8::from(name == state);
    let text = format!(
        "# TYPE baler_records_emitted_total counter\n\
         baler_records_emitted_total 5000\n\
         # TYPE baler_records_delivered_total counter\n\
         baler_records_delivered_total {delivered}\n\
         # TYPE baler_records_dropped_total counter\n\
         baler_records_dropped_total{{reason=\"refused\"}} 7\n\
         baler_records_dropped_total{{reason=\"shutdown\"}} 0\n\
         # TYPE baler_confirmed_bytes_total counter\n\
         baler_confirmed_bytes_total 2097152\n\
         # TYPE baler_oldest_unconfirmed_seconds gauge\n\
         baler_oldest_unconfirmed_seconds 1.25\n\
         # TYPE baler_writer_state gauge\n\
         baler_writer_state{{state=\"closed\"}} {}\n\
         baler_writer_state{{state=\"open\"}} {}\n\
         # TYPE baler_lane_lag_chunks gauge\n\
         baler_lane_lag_chunks{{worker=\"0\",lane=\"3\"}} 12\n\
         baler_lane_lag_chunks{{worker=\"0\",lane=\"4\"}} 40\n\
         baler_lane_lag_chunks{{worker=\"1\",lane=\"4\"}} 38\n\
         # TYPE baler_build_info gauge\n\
         baler_build_info{{version=\"0.1.0\",command=\"send\"}} 1\n\
         # TYPE baler_endpoint_info gauge\n\
         baler_endpoint_info{{role=\"sink\",endpoint=\"file:/a?b=\\\"c,d\\\"\"}} 1\n\
         # TYPE process_start_time_seconds gauge\n\
         process_start_time_seconds {started}\n",
        is("closed"),
        is("open"),
    );
    Snapshot::parse(&text).unwrap()
}

#[test]
fn rates_are_differences_within_one_life_of_the_process() {
    let mut first = sending(1_000, "open", 1);
    first.taken -= Duration::from_secs(2);
    let second = sending(4_000, "open", 1);
    let view = View::new("here", Some(&first), &second);
    let rate = view.counters["records_delivered"];
    assert_eq!(rate.total, 4_000.0);
    assert!(
        (rate.per_second.unwrap() - 1_500.0).abs() < 10.0,
        "{rate:?}"
    );
    assert_eq!(view.counters["records_emitted"].per_second, Some(0.0));
    assert_eq!(
        view.lanes[0].lane, "4",
        "the lane furthest behind comes first"
    );
    let lag: Vec<_> = view.lanes.iter().map(|lane| lane.lag_chunks).collect();
    assert_eq!(lag, [40.0, 12.0], "two workers tell of lane 4");
    assert_eq!(view.dropped.keys().collect::<Vec<_>>(), ["refused"]);
    let restarted = View::new("here", Some(&first), &sending(10, "open", 2));
    assert_eq!(restarted.counters["records_delivered"].per_second, None);
}

#[test]
fn only_metrics_that_exist_are_shown() {
    let known = |name: &str| {
        let all = crate::observe::metric::ALL;
        assert!(all.iter().any(|metric| metric.name == name), "{name}");
    };
    COUNTED.iter().for_each(|it| known(it.metric));
    NOW.iter().for_each(|it| known(it.metric));
}

#[test]
fn screen_shows_figures_and_a_process_that_goes_away_and_comes_back() {
    let mut screen = Screen::default();
    let mut first = sending(1_000, "open", 1);
    first.taken -= Duration::from_secs(1);
    let second = sending(4_000, "closed", 1);
    screen.update(Ok(View::new("here", None, &first)));
    assert!(screen.text().contains("writer open"));
    screen.update(Ok(View::new("here", Some(&first), &second)));
    let text = screen.text();
    for part in [
        "send 0.1.0",
        "to           file:/a?b=\"c,d\"",
        "writer closed",
        "records delivered",
        "4,000",
        "2.0 MiB",
        "1.2 s",
        "4 (worker 0)",
        "refused",
        "█",
    ] {
        assert!(text.contains(part), "no {part} in\n{text}");
    }
    screen.update(Err("connection refused".to_owned()));
    let text = screen.text();
    assert!(text.contains("away: connection refused"), "{text}");
    assert!(text.contains("4,000"), "the last figures stay\n{text}");
    screen.update(Ok(View::new("here", None, &second)));
    assert!(!screen.text().contains("away"));
}

#[test]
fn the_view_is_the_one_that_was_read() {
    let mut first = sending(1_000, "open", 1);
    let second = sending(4_000, "open", 1);
    first.taken = second.taken - Duration::from_secs(2);
    let view = View::new("http://127.0.0.1:9464", Some(&first), &second);
    let text = view.text(|_| "▁▃█".to_owned());
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/top.txt");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(path, &text).unwrap();
    }
    assert_eq!(text, std::fs::read_to_string(path).unwrap());
}

#[test]
fn addresses_are_urls_or_hosts_with_ports() {
    assert_eq!(base_url("127.0.0.1:9464").unwrap(), "http://127.0.0.1:9464");
    assert_eq!(base_url("http://h:1/").unwrap(), "http://h:1");
    for wrong in ["ftp://h:1", "h h", ""] {
        assert!(base_url(wrong).is_err(), "{wrong}");
    }
    assert!(Snapshot::parse("up 1\n").is_err(), "another program's");
}
