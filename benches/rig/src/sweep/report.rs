//! The cells as tables of text.

use baler_common::transport::ContainerKind;

use super::advice::{NONE, advice};
use super::cell::{
    BEYOND_LOAD, BEYOND_LOAD_BY_PIPELINED, BROKER_CPU, BYTES_BY_PIPELINED, CPU_BY_AWAITING,
    CPU_BY_PIPELINED, Cell, LATENCY_P50, LATENCY_P99, MESSAGES, READER_CPU, WIRE_BYTES, WRITER_CPU,
};
use super::model::{CostModel, HeldOut};
use super::recommend::Recommendation;
use super::user_records::RecordsReport;
use crate::numbers::{short, short_or_dash, significant};
use crate::report::{Column, differ, legend, table, wrapped};

/// Returns the tables, failures and losses, and the recommendations with their models.
pub(super) fn text(
    records: Option<&RecordsReport>,
    cells: &[Cell],
    models: &[CostModel],
    recommended: Option<&[Recommendation]>,
) -> String {
    let mut out = String::new();
    if let Some(records) = records {
        out.push_str(&wrapped(&records.sentence()));
        out.push('\n');
    }
    out.push_str(&table(cells, &[SETTINGS, COSTS].concat()));
    out.push_str(&legend(cells, &[SETTINGS, COSTS].concat()));
    out.push('\n');
    out.push_str(&table(cells, &[SETTINGS, DELIVERIES].concat()));
    out.push_str(&legend(cells, DELIVERIES));
    for problem in problems(cells) {
        out.push_str(&wrapped(&problem));
    }
    let Some(recommended) = recommended else {
        return out;
    };
    out.push('\n');
    if recommended.is_empty() {
        out.push_str(&wrapped(NONE));
    }
    for one in recommended {
        out.push_str(&wrapped(&advice(one, cells, models).join(" ")));
    }
    for model in models {
        let name = &model.compression;
        let factors = factors(model);
        out.push_str(&wrapped(&format!("Model, compression {name}: {factors}")));
        out.push_str(&table(&model.held_out, ERRORS));
        out.push_str(&legend(&model.held_out, ERRORS));
    }
    out
}

/// A sentence for each cell that failed or lost records.
pub(super) fn problems(cells: &[Cell]) -> Vec<String> {
    let mut all = Vec::new();
    for cell in cells {
        let (label, lost) = (cell.case.label(), cell.lost);
        all.extend(cell.failure.iter().map(|why| format!("{label}: {why}")));
        if lost > 0 {
            all.push(format!("{label}: {lost} records were lost"));
        }
    }
    all
}

/// Returns the costs in a model.
pub(super) fn factors(model: &CostModel) -> String {
    format!(
        "{} us a wake-up, {} us a single message, {} ns a record, {} ns a byte; {} bytes a message \
         beside {:.3} x its payload.",
        known(model.cpu_seconds_per_look * 1e6, 0),
        known(model.cpu_seconds_per_message * 1e6, 3),
        known(model.cpu_seconds_per_record * 1e9, 1),
        known(model.cpu_seconds_per_byte * 1e9, 2),
        known(model.wire_bytes_per_message, 0),
        model.wire_bytes_per_payload_byte,
    )
}

/// Returns a cost with three significant digits, but at most these decimals. A cost that is too small
/// for them is not 0, only not known.
fn known(value: f64, decimals: u8) -> String {
    let least = 0.1_f64.powi(decimals.into());
    let decimals = usize::from(decimals);
    match value {
        small if small < least / 2.0 => format!("less than {least:.decimals$}"),
        _ => format!("{value:.0$}", decimals.min(significant(value))),
    }
}

/// The settings of a case in which the cases differ.
pub(super) const SETTINGS: &[Column<Cell>] = &[
    Column::text("chunk size", |cell: &Cell| cell.case.label()).key().meaning(
        "Records a chunk, or auto, where Baler chooses. pipelined and awaiting are the client library \
         alone with one message a record; awaiting waits for each confirmation. pacing makes the \
         records in time and sends none.",
    ),
    Column::number("rate", |cell: &Cell| {
        cell.case.rate.map_or_else(|| "max".to_owned(), short)
    })
    .key().meaning("Records that are due a second; max: as many as the medium takes.")
    .shown_for(|cells: &[Cell]| differ(cells, |cell| cell.case.rate)),
    Column::number("cons", |cell: &Cell| cell.case.consumers.to_string())
        .key().meaning("Processes that share the arriving chunks.")
        .shown_for(|cells: &[Cell]| differ(cells, |cell| cell.case.consumers)),
    Column::number("format", |cell: &Cell| {
        let container = cell.case.container();
        container.map_or("-", ContainerKind::name).to_owned()
    })
    .key().meaning("The format of chunks: Baler's own (native), or Kieker's.")
    .shown_for(|cells: &[Cell]| chunks_differ(cells, |cell| cell.case.container())),
    Column::number("compr", |cell: &Cell| {
        cell.case
            .compression
            .clone()
            .unwrap_or_else(|| "-".to_owned())
    })
    .key().meaning("How chunks are compressed.")
    .shown_for(|cells: &[Cell]| chunks_differ(cells, |cell| cell.case.compression.clone())),
    Column::number("wait", |cell: &Cell| short_or_dash(cell.case.wait_time_ms))
        .key().meaning("A chunk closes when its oldest record has waited this number of milliseconds.")
        .shown_for(|cells: &[Cell]| chunks_differ(cells, |cell| cell.case.wait_time_ms)),
];

/// CPU and network, as in the paper, and divided by the client library's figures. `net` excludes
/// the cost of making the records in time, on both sides of a ratio.
pub(super) const COSTS: &[Column<Cell>] = &[
    Column::number("CPU s/s", |cell: &Cell| decimals(cell.mean(WRITER_CPU), 4)).meaning(
        "CPU seconds that the writing process spends a second, on average; 0.01 is 1 % of a core.",
    ),
    Column::number("±95 %", |cell: &Cell| {
        decimals(cell.figure(WRITER_CPU).map(|it| it.margin()), 4)
    })
    .meaning(
        "The 95 % confidence interval of this mean, to each side. Settings whose intervals overlap \
         cannot be told apart.",
    ),
    Column::number("net", |cell: &Cell| decimals(cell.mean(BEYOND_LOAD), 4))
        .meaning("CPU s/s without the cost of making the records (pacing).")
        .shown_for(|cells: &[Cell]| any_has(cells, BEYOND_LOAD)),
    Column::number("KiB/s", |cell: &Cell| {
        decimals(cell.mean(WIRE_BYTES).map(|bytes| bytes / 1024.0), 1)
    })
    .meaning("KiB a second on the wire, both ways, without headers of TCP and IP."),
    Column::number("x CPU", |cell: &Cell| {
        decimals(cell.mean(CPU_BY_PIPELINED), 3)
    })
    .meaning("CPU time by that of pipelined: 0.1 is a tenth.")
    .shown_for(|cells: &[Cell]| any_has(cells, CPU_BY_PIPELINED)),
    Column::number("x net", |cell: &Cell| {
        decimals(cell.mean(BEYOND_LOAD_BY_PIPELINED), 3)
    })
    .meaning("The same without the cost of making the records on either side.")
    .shown_for(|cells: &[Cell]| any_has(cells, BEYOND_LOAD_BY_PIPELINED)),
    Column::number("x bytes", |cell: &Cell| {
        decimals(cell.mean(BYTES_BY_PIPELINED), 3)
    })
    .meaning("Bytes by those of pipelined.")
    .shown_for(|cells: &[Cell]| any_has(cells, BYTES_BY_PIPELINED)),
    Column::number("x await", |cell: &Cell| {
        decimals(cell.mean(CPU_BY_AWAITING), 3)
    })
    .meaning("CPU time by that of awaiting.")
    .shown_for(|cells: &[Cell]| any_has(cells, CPU_BY_AWAITING)),
];

/// The arrived records, and their latency.
pub(super) const DELIVERIES: &[Column<Cell>] = &[
    Column::number("msg/s", |cell: &Cell| short_or_dash(cell.mean(MESSAGES)))
        .meaning("Confirmed messages a second; k is a thousand, M a million."),
    Column::number("rec/s", |cell: &Cell| short_or_dash(cell.achieved_rate))
        .meaning("Confirmed records a second; in the row pacing, made ones."),
    Column::number("sat", |cell: &Cell| {
        let shown = match (cell.case.rate, cell.saturated) {
            (None, _) => "-",
            (Some(_), true) => "YES",
            (Some(_), false) => "no",
        };
        shown.to_owned()
    })
    .meaning(
        "Saturated: the medium confirmed less than 99 % of the due records, so that costs and times \
         of this row are not those of the load.",
    ),
    Column::number("p50 ms", |cell: &Cell| {
        short_or_dash(cell.mean(LATENCY_P50))
    })
    .meaning("Half of the records were decoded this number of milliseconds after they were due."),
    Column::number("p99 ms", |cell: &Cell| {
        short_or_dash(cell.mean(LATENCY_P99))
    })
    .meaning("The same for 99 % of the records."),
    Column::number("reader", |cell: &Cell| decimals(cell.mean(READER_CPU), 3))
        .meaning("CPU seconds a second of the reading processes."),
    Column::number("broker", |cell: &Cell| decimals(cell.mean(BROKER_CPU), 3))
        .meaning("CPU seconds a second of the broker.")
        .shown_for(|cells: &[Cell]| any_has(cells, BROKER_CPU)),
    Column::number("lost", |cell: &Cell| cell.lost.to_string())
        .meaning("Records that did not arrive."),
];

/// The errors of a model for sizes that were left out of its fit.
pub(super) const ERRORS: &[Column<HeldOut>] = &[
    Column::text("left out", |one: &HeldOut| one.chunk_records.to_string())
        .meaning("The chunk size that was left out of a fit, and was then predicted by it."),
    Column::number("CPU", |one: &HeldOut| {
        format!("{:+.1} %", one.cpu_error * 100.0)
    })
    .meaning("Predicted by measured CPU time, less 1."),
    Column::number("bytes", |one: &HeldOut| {
        format!("{:+.1} %", one.bytes_error * 100.0)
    })
    .meaning("Predicted by measured bytes, less 1."),
    Column::number("lies", |one: &HeldOut| {
        if one.between {
            "between others"
        } else {
            "beyond"
        }
        .to_owned()
    })
    .meaning("Whether smaller and larger sizes were left. Nothing is recommended beyond them."),
];

/// Whether the cells with chunks differ in this setting.
fn chunks_differ<T: PartialEq>(cells: &[Cell], of: fn(&Cell) -> Option<T>) -> bool {
    let settings: Vec<Option<T>> = cells.iter().map(of).filter(Option::is_some).collect();
    settings.windows(2).any(|pair| pair.first() != pair.last())
}

/// Whether a cell has the figure of this name.
fn any_has(cells: &[Cell], name: &str) -> bool {
    cells.iter().any(|cell| cell.mean(name).is_some())
}

fn decimals(value: Option<f64>, decimals: usize) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.decimals$}"))
}

#[cfg(test)]
mod tests;
