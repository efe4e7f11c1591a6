//! The cheapest setting within the user's limits.

use serde::Serialize;

use super::case::{Way, records_of};
use super::cell::{Cell, load_cpu};
use super::load::{Material, payload_per_record};
use super::model::{CostModel, Expected};
use crate::harness::Failure;

/// The limits of a recommendation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Bounds {
    /// The 99th percentile of the latency, in milliseconds.
    pub max_latency_ms: Option<f64>,
    /// Bytes on the wire.
    pub max_bytes_per_second: Option<u64>,
}

/// A recommended setting.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Recommendation {
    /// The compression of chunks.
    pub compression: String,
    /// The rate of the load.
    pub rate: f64,
    /// The setting and its costs: the figures of its cell if exactly this setting was measured,
    /// otherwise the model's.
    #[serde(flatten)]
    pub expected: Expected,
    /// Whether exactly this setting was measured.
    pub measured: bool,
    /// The limits that it keeps.
    pub bounds: Bounds,
}

/// A setting with smaller chunks is preferred if it costs at most this factor more: it delivers
/// sooner and loses less if a process is killed.
const AS_CHEAP: f64 = 1.01;

/// Returns the best settings, one for each measured rate; none for a rate without a setting within
/// the limits.
///
/// # Errors
///
/// The load cannot be encoded.
pub(super) fn recommend(
    cells: &[Cell],
    models: &[CostModel],
    bounds: Bounds,
    material: Material<'_>,
) -> Result<Vec<Recommendation>, Failure> {
    let baler = || cells.iter().filter(|cell| cell.case.way == Way::Baler);
    let mut rates: Vec<f64> = baler().filter_map(|cell| cell.case.rate).collect();
    rates.sort_by(f64::total_cmp);
    rates.dedup();
    let mut best = Vec::new();
    for rate in rates {
        let mut found: Vec<Recommendation> = Vec::new();
        for model in models {
            found.extend(candidates(cells, model, rate, bounds, material)?);
        }
        let cost = |one: &Recommendation| one.expected.writer_cpu_seconds_per_second;
        let cheapest = found.iter().map(cost).fold(f64::INFINITY, f64::min);
        let as_cheap = found
            .into_iter()
            .filter(|one| cost(one) <= cheapest * AS_CHEAP);
        best.extend(as_cheap.min_by_key(|one| one.expected.chunk_records));
    }
    Ok(best)
}

/// Settings within the limits and between the measured ones.
fn candidates(
    cells: &[Cell],
    model: &CostModel,
    rate: f64,
    bounds: Bounds,
    material: Material<'_>,
) -> Result<Vec<Recommendation>, Failure> {
    let measured: Vec<&Cell> = cells
        .iter()
        .filter(|cell| {
            cell.case.is_chunked_by(&model.compression)
                && cell.case.rate == Some(rate)
                && !cell.saturated
        })
        .collect();
    let sizes = || measured.iter().filter_map(|cell| cell.case.chunk_records);
    let (Some(smallest), Some(largest)) = (sizes().min(), sizes().max()) else {
        return Ok(Vec::new());
    };
    // The wait time decides how often the collector wakes up, so the model does not cover wait
    // times that were not measured.
    let mut waits: Vec<f64> = measured
        .iter()
        .filter_map(|cell| cell.case.wait_time_ms)
        .collect();
    waits.sort_by(f64::total_cmp);
    waits.dedup();
    let mut all: Vec<u32> = sizes().collect();
    let powers = (0..32).map(|power| 1_u32 << power);
    all.extend(powers.filter(|size| (smallest..=largest).contains(size)));
    all.sort_unstable();
    all.dedup();
    let load_cpu = measured
        .first()
        .and_then(|cell| load_cpu(&cell.case, cells))
        .unwrap_or(0.0);
    let mut found = Vec::new();
    for (size, wait) in waits
        .iter()
        .flat_map(|wait| all.iter().map(move |size| (*size, *wait)))
    {
        let records = records_of(size, wait, rate);
        let payload = payload_per_record(&model.compression, material, records, rate)?;
        let measured = measured
            .iter()
            .find(|cell| {
                (cell.case.chunk_records, cell.case.wait_time_ms) == (Some(size), Some(wait))
            })
            .and_then(|cell| Expected::measured(cell));
        let expected =
            measured.unwrap_or_else(|| model.predict(size, wait, rate, payload, load_cpu));
        let is_late = bounds
            .max_latency_ms
            .is_some_and(|max| expected.latency_ms_p99 > max);
        let is_large = bounds
            .max_bytes_per_second
            .is_some_and(|max| expected.wire_bytes_per_second > crate::statistics::to_f64(max));
        if !is_late && !is_large {
            found.push(Recommendation {
                compression: model.compression.clone(),
                rate,
                expected,
                measured: measured.is_some(),
                bounds,
            });
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests;
