//! The cheapest measured setting under the user's bounds, and a recommendation in sentences.

use super::args::SweepArgs;
use super::case::Way;
use super::cell::{Cell, LATENCY_P99, WIRE_BYTES, WRITER_CPU};
use crate::report::{short, short_or_dash};
use crate::statistics::{Interval, to_f64};

/// A setting that costs at most this factor more is taken if its chunks are smaller: it delivers sooner
/// and loses less with a process that is killed.
const AS_CHEAP: f64 = 1.01;

/// The sentence where there is no recommendation.
pub(super) const NONE: &str = "No setting is recommended: none kept up within the bounds.";

/// The best cells, one for each measured rate; none for a rate where no setting is within the bounds.
pub(super) fn recommend<'a>(cells: &'a [Cell], args: &SweepArgs) -> Vec<&'a Cell> {
    let max_latency_ms = args.max_latency.map(|time| time.as_secs_f64() * 1e3);
    let max_bytes = args.max_bytes_per_second.map(to_f64);
    let is_within = |cell: &Cell, name: &str, most: Option<f64>| {
        most.is_none_or(|most| cell.mean(name).is_some_and(|it| it <= most))
    };
    let mut rates: Vec<f64> = cells.iter().filter_map(|cell| cell.case.rate).collect();
    rates.sort_by(f64::total_cmp);
    rates.dedup();
    let cost = |cell: &Cell| cell.mean(WRITER_CPU).unwrap_or(f64::INFINITY);
    let of_rate = |rate: f64| {
        let found = || {
            cells.iter().filter(move |cell| {
                cell.case.way == Way::Baler
                    && cell.case.rate == Some(rate)
                    && !cell.saturated
                    && cell.mean(WRITER_CPU).is_some()
                    && is_within(cell, LATENCY_P99, max_latency_ms)
                    && is_within(cell, WIRE_BYTES, max_bytes)
            })
        };
        let cheapest = found().map(cost).fold(f64::INFINITY, f64::min);
        let as_cheap = found().filter(|cell| cost(cell) <= cheapest * AS_CHEAP);
        as_cheap.min_by_key(|cell| cell.case.chunk_records)
    };
    rates.into_iter().filter_map(of_rate).collect()
}

/// The recommendation with its gain and its price, and then sentences about how sure it is.
pub(super) fn advice(one: &Cell, cells: &[Cell]) -> Vec<String> {
    let beside: Vec<&Cell> = cells
        .iter()
        .filter(|cell| cell.case.rate == one.case.rate)
        .collect();
    let Some(cpu) = one.figure(WRITER_CPU) else {
        return Vec::new();
    };
    let mut said = vec![headline(one, cpu, baseline(one, &beside))];
    said.push(format!(
        "This setting was measured {} times: with 95 % confidence it needs {:.4} to {:.4} CPU seconds \
         a second.",
        one.repetitions, cpu.low, cpu.high
    ));
    said.extend(equals(one, cpu, &beside));
    for cell in beside {
        if cell.case.way.is_plain() && cell.saturated {
            said.push(format!(
                "The client library alone, {}, was saturated: it confirmed {} of {} records/s. Nothing \
                 is compared with it.",
                cell.case.way.name(),
                short_or_dash(cell.achieved_rate),
                short_or_dash(cell.offered_rate)
            ));
        }
    }
    said
}

/// Whether both are chunks of a fixed size with the same compression.
fn is_comparable(one: &Cell, other: &Cell) -> bool {
    other.case.way == Way::Baler && other.case.compression == one.case.compression
}

/// The cell that a recommendation is compared with: the client library alone, or the smallest chunks
/// where it was not measured or did not keep up.
fn baseline<'a>(one: &Cell, beside: &[&'a Cell]) -> Option<&'a Cell> {
    let kept_up = || beside.iter().copied().filter(|cell| !cell.saturated);
    let pipelined = kept_up().find(|cell| cell.case.way == Way::Pipelined);
    pipelined.or_else(|| {
        let chunks = kept_up().filter(|cell| is_comparable(one, cell));
        let smallest = chunks.min_by_key(|cell| cell.case.chunk_records);
        smallest.filter(|cell| cell.case != one.case)
    })
}

fn headline(one: &Cell, own: Interval, baseline: Option<&Cell>) -> String {
    let cpu = own.mean;
    let set = format!(
        "At {} records/s, set chunk_records = {}, wait_time = {} ms and compression {}",
        short_or_dash(one.case.rate),
        one.case.label(),
        one.case.wait_time_ms.unwrap_or_default(),
        one.case.compression.as_deref().unwrap_or("none"),
    );
    let arrives = match one.mean(LATENCY_P99) {
        Some(ms) => format!(", and 99 % of the records arrive within {} ms", short(ms)),
        None => String::new(),
    };
    let Some((cell, theirs)) = baseline.and_then(|cell| Some((cell, cell.figure(WRITER_CPU)?)))
    else {
        return format!(
            "{set}: the sending process then spends {cpu:.4} CPU seconds a second{arrives}."
        );
    };
    let name = match cell.case.chunk_records {
        Some(size) => format!("with chunk_records = {size}"),
        None => "with the client library alone".to_owned(),
    };
    let later = match cell.mean(LATENCY_P99) {
        Some(ms) => format!("{arrives} instead of {} ms", short(ms)),
        None => arrives,
    };
    let theirs_mean = theirs.mean;
    if own.high < theirs.low {
        let gain = (1.0 - cpu / theirs_mean) * 100.0;
        format!(
            "{set}: the sending process then spends {gain:.0} % less CPU time than {name} \
             ({cpu:.4} instead of {theirs_mean:.4} CPU seconds a second){later}."
        )
    } else {
        format!(
            "{set}, but do not expect a gain: {cpu:.4} CPU seconds a second are not fewer than the \
             {theirs_mean:.4} {name} by more than the intervals{later}."
        )
    }
}

/// The sizes whose intervals overlap that of the recommended one.
fn equals(one: &Cell, own: Interval, beside: &[&Cell]) -> Option<String> {
    let others = beside.iter().filter(|cell| {
        let cpu = cell.figure(WRITER_CPU);
        !cell.saturated
            && cell.case != one.case
            && is_comparable(one, cell)
            && cpu.is_some_and(|cpu| cpu.low <= own.high && own.low <= cpu.high)
    });
    let sizes: Vec<String> = others.map(|cell| cell.case.label()).collect();
    (!sizes.is_empty()).then(|| {
        format!(
            "Its interval overlaps that of chunk_records = {}: the measurement does not tell them apart.",
            sizes.join(", ")
        )
    })
}

#[cfg(test)]
mod tests;
