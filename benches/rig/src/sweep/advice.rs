//! A recommendation in sentences: the setting, its gain and cost, and its certainty.

use super::case::Way;
use super::cell::{Cell, LATENCY_P99, WRITER_CPU};
use super::model::CostModel;
use super::recommend::Recommendation;
use crate::report::short;
use crate::statistics::Interval;

/// The sentence if there is no recommendation.
pub(super) const NONE: &str =
    "No setting is recommended: too few sizes kept up, or none is within the bounds.";

/// Returns the recommendation with its gain and cost, followed by sentences about its certainty.
pub(super) fn advice(one: &Recommendation, cells: &[Cell], models: &[CostModel]) -> Vec<String> {
    let beside: Vec<&Cell> = cells
        .iter()
        .filter(|cell| cell.case.rate == Some(one.rate))
        .collect();
    let own = beside.iter().find(|cell| is_of(cell, one)).copied();
    let cpu = own.and_then(|own| own.figure(WRITER_CPU));
    let mut said = vec![headline(one, cpu, baseline(one, &beside))];
    if let (Some(own), Some(cpu)) = (own, cpu) {
        said.push(format!(
            "This setting was measured {} times: with 95 % confidence it needs {:.4} to {:.4} CPU \
             seconds a second.",
            own.repetitions, cpu.low, cpu.high
        ));
    } else {
        said.push("This setting was not measured: the model predicts its costs.".to_owned());
    }
    if let Some(model) = models.iter().find(|it| it.compression == one.compression) {
        said.extend(error_of(model));
    }
    said.extend(cpu.and_then(|cpu| equals(one, cpu, &beside)));
    for cell in beside {
        if cell.case.way.is_plain() && cell.saturated {
            said.push(format!(
                "The client library alone, {}, was saturated: it confirmed {} of {} records/s. Nothing \
                 is compared with it.",
                cell.case.way.name(),
                cell.achieved_rate.map_or_else(String::new, short),
                short(one.rate)
            ));
        }
    }
    said
}

/// Whether this is the cell of the recommended setting.
fn is_of(cell: &Cell, one: &Recommendation) -> bool {
    let case = &cell.case;
    let setting = (case.chunk_records, case.wait_time_ms);
    let it = &one.expected;
    case.is_chunked_by(&one.compression)
        && setting == (Some(it.chunk_records), Some(it.wait_time_ms))
}

/// Returns the cell with which a recommendation is compared: the client library alone, or the
/// smallest chunks if it was not measured or did not keep up.
fn baseline<'a>(one: &Recommendation, beside: &[&'a Cell]) -> Option<&'a Cell> {
    let kept_up = || beside.iter().copied().filter(|cell| !cell.saturated);
    let pipelined = kept_up().find(|cell| cell.case.way == Way::Pipelined);
    pipelined.or_else(|| {
        let chunks = kept_up().filter(|cell| cell.case.is_chunked_by(&one.compression));
        let smallest = chunks.min_by_key(|cell| cell.case.chunk_records);
        smallest.filter(|cell| !is_of(cell, one))
    })
}

fn headline(one: &Recommendation, own: Option<Interval>, baseline: Option<&Cell>) -> String {
    let it = &one.expected;
    let cpu = it.writer_cpu_seconds_per_second;
    let set = format!(
        "At {} records/s, set chunk_records = {}, wait_time = {} ms and compression {}",
        short(one.rate),
        it.chunk_records,
        it.wait_time_ms,
        one.compression
    );
    let arrives = format!(
        "99 % of the records arrive within {} ms",
        short(it.latency_ms_p99)
    );
    let Some((cell, theirs)) = baseline.and_then(|cell| Some((cell, cell.figure(WRITER_CPU)?)))
    else {
        return format!(
            "{set}: the sending process then spends {cpu:.4} CPU seconds a second, and {arrives}."
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
    if own.map_or(cpu, |own| own.high) < theirs.low {
        let gain = (1.0 - cpu / theirs_mean) * 100.0;
        format!(
            "{set}: the sending process then spends {gain:.0} % less CPU time than {name} \
             ({cpu:.4} instead of {theirs_mean:.4} CPU seconds a second), and {later}."
        )
    } else {
        format!(
            "{set}, but do not expect a gain: {cpu:.4} CPU seconds a second are not fewer than the \
             {theirs_mean:.4} {name} by more than the intervals, and {later}."
        )
    }
}

/// Returns the sizes whose intervals overlap the recommended one's.
fn equals(one: &Recommendation, own: Interval, beside: &[&Cell]) -> Option<String> {
    let others = beside.iter().filter(|cell| {
        let cpu = cell.figure(WRITER_CPU);
        !cell.saturated
            && !is_of(cell, one)
            && cell.case.is_chunked_by(&one.compression)
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

fn error_of(model: &CostModel) -> Option<String> {
    let between = model.held_out.iter().filter(|one| one.between);
    let worst = between.map(|one| one.cpu_error.abs()).reduce(f64::max)?;
    Some(format!(
        "The model was at most {:.1} % off in CPU time at sizes that were left out of its fit and lie \
         between others.",
        worst * 100.0
    ))
}
