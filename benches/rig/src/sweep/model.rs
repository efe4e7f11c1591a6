//! The cost of a size that was not measured: a model fitted to the measured sizes.
//!
//! ```text
//! bytes/s    = payload(size, compression) x overhead a byte + messages/s x bytes a message
//! CPU s/s    = load + looks/s x (a + b x (messages a look)^0.92) + records/s x c + bytes/s x d
//! p99        = base + time to fill a chunk x e + wait time x f
//! messages/s = records/s / min(size, records that come within the wait time)
//! looks/s    = messages/s, or fewer: a collector makes several small chunks at a time
//! ```
//!
//! A look is one wake-up of the collector, which finds cold caches. Chunks that are made at one
//! look are made with warm caches and sent together: the more messages, the less each costs. The
//! exponent 0.92 predicted left-out sizes best in nineteen sweeps over RabbitMQ, Kafka and TCP: 2.4
//! % off on average, and 4.1 % with an exponent of 1.
//!
//! The bytes of a chunk of any size are not fitted: the load is encoded to measure them.

use serde::Serialize;

use super::case::{looks_of, records_of};
use super::cell::{Cell, LATENCY_P99, WIRE_BYTES, WRITER_CPU, load_cpu};
use super::load::{Material, payload_per_record};
use crate::harness::Failure;
use crate::statistics::{Equation, non_negative_least_squares};

/// A fitted model of one compression and number of consumers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CostModel {
    /// Its compression.
    pub compression: String,
    /// Seconds of CPU time of the writing process for each wake-up of the collector.
    pub cpu_seconds_per_look: f64,
    /// A message that is made alone; each of several messages of one look costs less.
    pub cpu_seconds_per_message: f64,
    /// A record, beyond the cost of the load alone.
    pub cpu_seconds_per_record: f64,
    /// A byte on the wire; 0 if too few sizes were measured to fit it.
    pub cpu_seconds_per_byte: f64,
    /// Bytes on the wire a message, beside its payload.
    pub wire_bytes_per_message: f64,
    /// Bytes on the wire a byte of payload.
    pub wire_bytes_per_payload_byte: f64,
    /// The 99th percentile of the latency of chunks that need no time to fill.
    pub latency_ms_p99_base: f64,
    /// Its growth for each millisecond that a chunk needs to fill.
    pub latency_ms_p99_per_fill_ms: f64,
    /// Its growth for each millisecond of wait time; 0 if only one wait time was measured.
    pub latency_ms_p99_per_wait_ms: f64,
    /// Its errors for sizes that were left out of a fit.
    pub held_out: Vec<HeldOut>,
}

/// A size that was left out of a fit, and the error of that fit for it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct HeldOut {
    /// The size.
    pub chunk_records: u32,
    /// Whether the fit had smaller and larger sizes.
    pub between: bool,
    /// Predicted CPU divided by measured CPU, minus 1.
    pub cpu_error: f64,
    /// Predicted bytes divided by measured bytes, minus 1.
    pub bytes_error: f64,
}

/// The cost of a setting, measured or predicted.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Expected {
    /// Records a chunk.
    pub chunk_records: u32,
    /// The longest wait of the oldest record.
    pub wait_time_ms: f64,
    /// Seconds of CPU time of the writing process a second.
    pub writer_cpu_seconds_per_second: f64,
    /// Bytes on the wire a second.
    pub wire_bytes_per_second: f64,
    /// The 99th percentile of the latency.
    pub latency_ms_p99: f64,
}

impl Expected {
    /// Returns the figures of a cell; `None` if it lacks one.
    pub(super) fn measured(cell: &Cell) -> Option<Self> {
        Some(Self {
            chunk_records: cell.case.chunk_records?,
            wait_time_ms: cell.case.wait_time_ms?,
            writer_cpu_seconds_per_second: cell.mean(WRITER_CPU)?,
            wire_bytes_per_second: cell.mean(WIRE_BYTES)?,
            latency_ms_p99: cell.mean(LATENCY_P99)?,
        })
    }
}

/// A cell in the form for the fit.
#[derive(Debug, Clone, Copy)]
struct Point {
    chunk_records: u32,
    rate: f64,
    messages: f64,
    looks: f64,
    /// The number of messages, each made alone, with the same cost as all its messages.
    single_messages: f64,
    fill_ms: f64,
    wait_ms: f64,
    payload: f64,
    /// The CPU time of the load alone.
    load_cpu: f64,
    cpu: f64,
    bytes: f64,
    p99: f64,
}

/// The cost of messages at one look is this power of their number, in units of a message made
/// alone.
const TOGETHER: f64 = 0.92;

/// Returns how many messages, each made alone, cost as much as `messages` at `looks`.
pub(super) fn single_messages(messages: f64, looks: f64) -> f64 {
    let at_once = (messages / looks).max(1.0);
    messages / at_once * at_once.powf(TOGETHER)
}

/// A model needs at least this number of sizes.
const MIN_SIZES: usize = 3;

/// With at least this number of sizes, the cost of a byte is fitted. With fewer sizes it is part of
/// the cost of a message and of a record.
const SIZES_FOR_BYTES: usize = 6;

impl Point {
    /// Returns the part that follows from a setting and a rate.
    fn unmeasured(chunk_records: u32, wait_ms: f64, rate: f64) -> Self {
        let records = records_of(chunk_records, wait_ms, rate);
        let messages = rate / records;
        let looks = looks_of(records, wait_ms, rate);
        Self {
            chunk_records,
            rate,
            messages,
            looks,
            single_messages: single_messages(messages, looks),
            fill_ms: records / rate * 1e3,
            wait_ms,
            payload: 0.0,
            load_cpu: 0.0,
            cpu: 0.0,
            bytes: 0.0,
            p99: 0.0,
        }
    }
}

/// The sizes of these points, in order.
fn sizes_of(points: &[Point]) -> Vec<u32> {
    let mut sizes: Vec<u32> = points.iter().map(|point| point.chunk_records).collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

impl CostModel {
    /// Fits the model to the cells of this compression; `None` if too few kept up.
    ///
    /// # Errors
    ///
    /// The load cannot be encoded.
    pub(super) fn fit(
        cells: &[Cell],
        compression: &str,
        material: Material<'_>,
    ) -> Result<Option<Self>, Failure> {
        let mut points = Vec::new();
        for cell in cells {
            if cell.case.is_chunked_by(compression) {
                points.extend(point(cell, cells, compression, material)?);
            }
        }
        let sizes = sizes_of(&points);
        if sizes.len() < MIN_SIZES {
            return Ok(None);
        }
        let mut model = Self::of(&points, compression);
        for (index, size) in sizes.iter().enumerate() {
            let (out, left): (Vec<Point>, Vec<Point>) = points
                .iter()
                .partition(|point| point.chunk_records == *size);
            let others = Self::of(&left, compression);
            for point in out {
                model.held_out.push(HeldOut {
                    chunk_records: *size,
                    between: index > 0 && index + 1 < sizes.len(),
                    cpu_error: others.cpu(&point, others.bytes(&point)) / point.cpu - 1.0,
                    bytes_error: others.bytes(&point) / point.bytes - 1.0,
                });
            }
        }
        Ok(Some(model))
    }

    fn of(points: &[Point], compression: &str) -> Self {
        // Least squares of relative errors fit every factor, and none is negative.
        let fit =
            |columns: &[fn(&Point) -> f64], of: fn(&Point) -> f64, whole: fn(&Point) -> f64| {
                let equations = points.iter().map(|it| Equation {
                    columns: columns.iter().map(|column| column(it)).collect(),
                    sum: of(it),
                    scale: whole(it),
                });
                let equations: Vec<_> = equations.collect();
                non_negative_least_squares(&equations, columns.len())
            };
        let wire = fit(
            &[|it| it.messages, |it| it.payload],
            |it| it.bytes,
            |it| it.bytes,
        );
        // Small chunks do not show whether records or wake-ups cost: prefer the records.
        let cpu_of: [fn(&Point) -> f64; 4] = [
            |it| it.single_messages,
            |it| it.rate,
            |it| it.looks,
            |it| it.bytes,
        ];
        let tells_bytes = sizes_of(points).len() >= SIZES_FOR_BYTES;
        let (cpu_of, _) = cpu_of.split_at(if tells_bytes { 4 } else { 3 });
        let cpu = fit(cpu_of, |it| it.cpu - it.load_cpu, |it| it.cpu);
        let latency_of: [fn(&Point) -> f64; 3] = [|_| 1.0, |it| it.fill_ms, |it| it.wait_ms];
        let wait = points.first().map(|it| it.wait_ms);
        let waits_differ = points.iter().any(|it| Some(it.wait_ms) != wait);
        let (latency_of, _) = latency_of.split_at(if waits_differ { 3 } else { 2 });
        let latency = fit(latency_of, |it| it.p99, |it| it.p99);
        let at = |factors: &[f64], index: usize| factors.get(index).copied().unwrap_or(0.0);
        Self {
            compression: compression.to_owned(),
            cpu_seconds_per_look: at(&cpu, 2),
            cpu_seconds_per_message: at(&cpu, 0),
            cpu_seconds_per_record: at(&cpu, 1),
            cpu_seconds_per_byte: at(&cpu, 3),
            wire_bytes_per_message: at(&wire, 0),
            wire_bytes_per_payload_byte: at(&wire, 1),
            latency_ms_p99_base: at(&latency, 0),
            latency_ms_p99_per_fill_ms: at(&latency, 1),
            latency_ms_p99_per_wait_ms: at(&latency, 2),
            held_out: Vec::new(),
        }
    }

    fn bytes(&self, point: &Point) -> f64 {
        point.messages * self.wire_bytes_per_message
            + point.payload * self.wire_bytes_per_payload_byte
    }

    fn cpu(&self, point: &Point, bytes: f64) -> f64 {
        point.load_cpu
            + point.looks * self.cpu_seconds_per_look
            + point.single_messages * self.cpu_seconds_per_message
            + point.rate * self.cpu_seconds_per_record
            + bytes * self.cpu_seconds_per_byte
    }

    /// Predicts the cost of a setting under a load that alone costs `load_cpu`.
    pub(super) fn predict(
        &self,
        chunk_records: u32,
        wait_time_ms: f64,
        rate: f64,
        payload_per_record: f64,
        load_cpu: f64,
    ) -> Expected {
        let point = Point {
            payload: payload_per_record * rate,
            load_cpu,
            ..Point::unmeasured(chunk_records, wait_time_ms, rate)
        };
        let bytes = self.bytes(&point);
        Expected {
            chunk_records,
            wait_time_ms,
            writer_cpu_seconds_per_second: self.cpu(&point, bytes),
            wire_bytes_per_second: bytes,
            latency_ms_p99: self.latency_ms_p99_base
                + self.latency_ms_p99_per_fill_ms * point.fill_ms
                + self.latency_ms_p99_per_wait_ms * point.wait_ms,
        }
    }
}

fn point(
    cell: &Cell,
    cells: &[Cell],
    compression: &str,
    material: Material<'_>,
) -> Result<Option<Point>, Failure> {
    let case = &cell.case;
    let (Some(rate), Some(size), Some(wait)) = (case.rate, case.chunk_records, case.wait_time_ms)
    else {
        return Ok(None);
    };
    let Some(measured) = Expected::measured(cell) else {
        return Ok(None);
    };
    let (cpu, bytes) = (
        measured.writer_cpu_seconds_per_second,
        measured.wire_bytes_per_second,
    );
    if cell.saturated || cpu <= 0.0 || bytes <= 0.0 {
        return Ok(None);
    }
    let records = records_of(size, wait, rate);
    Ok(Some(Point {
        payload: payload_per_record(compression, material, records, rate)? * rate,
        load_cpu: load_cpu(case, cells).unwrap_or(0.0).min(cpu),
        cpu,
        bytes,
        p99: measured.latency_ms_p99.max(1e-3),
        ..Point::unmeasured(size, wait, rate)
    }))
}

#[cfg(test)]
mod tests;
