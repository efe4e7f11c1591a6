//! A view as text: tables for `--once`, and figures for both.

use super::view::{NOW, Rate, Unit, View};
use crate::output;

/// A view as tables.
pub(super) fn text(view: &View) -> String {
    let mut head = vec![(
        "process",
        format!("{} {} at {}", view.command, view.version, view.address),
    )];
    for [role, endpoint] in &view.endpoints {
        head.push((if role == "sink" { "to" } else { "from" }, endpoint.clone()));
    }
    let connections = view.connections();
    if !connections.is_empty() {
        head.push(("connections", connections));
    }
    let mut text = output::two_columns(&head);
    let rates = view.shown().map(|(counted, rate)| {
        vec![
            counted.title.to_owned(),
            per_second(rate, counted.unit),
            total(rate.total, counted.unit),
        ]
    });
    text.push('\n');
    text.push_str(&output::table(
        &["counter", "a second", "total"],
        &[1, 2],
        rates,
    ));
    let now = NOW.iter().filter_map(|(name, title, _, unit)| {
        let value = view.now.get(name)?;
        Some(vec![(*title).to_owned(), total(*value, *unit)])
    });
    text.push('\n');
    text.push_str(&output::table(&["now", "value"], &[1], now));
    if !view.dropped.is_empty() {
        let rows = view.dropped.iter().map(|(reason, rate)| {
            let speed = per_second(*rate, Unit::Number);
            vec![reason.clone(), speed, total(rate.total, Unit::Number)]
        });
        text.push('\n');
        text.push_str(&output::table(
            &["dropped", "a second", "total"],
            &[1, 2],
            rows,
        ));
    }
    if !view.lanes.is_empty() {
        let rows = view.lanes.iter().map(|lane| {
            let lag = total(lane.lag_chunks, Unit::Number);
            vec![lane.worker.clone(), lane.lane.clone(), lag]
        });
        text.push('\n');
        text.push_str(&output::table(
            &["worker", "lane", "lag in chunks"],
            &[2],
            rows,
        ));
    }
    text
}

/// How fast a counter grows; `-` when that is not known.
pub(super) fn per_second(rate: Rate, unit: Unit) -> String {
    match (rate.per_second, unit) {
        (None, _) => "-".to_owned(),
        // Seconds a second: of one core.
        (Some(value), Unit::Seconds) => format!("{:.1} %", value * 100.0),
        (Some(value), Unit::Bytes) => output::bytes(whole(value)),
        (Some(value), Unit::Number) if value > 0.0 && value < 10.0 => format!("{value:.1}"),
        (Some(value), Unit::Number) => output::number(whole(value)),
    }
}

/// A value with its unit.
pub(super) fn total(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Bytes => output::bytes(whole(value)),
        Unit::Number => output::number(whole(value)),
        Unit::Seconds => format!("{value:.1} s"),
    }
}

/// The nearest whole number.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the cast saturates, and figures are not negative"
)]
fn whole(value: f64) -> u64 {
    value.round() as u64
}
