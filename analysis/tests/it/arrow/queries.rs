//! The five queries of README.md return the same results in DuckDB and DataFusion as the trace
//! analysis.

use std::collections::BTreeMap;
use std::sync::Arc;

use baler_analysis::Stage as _;
use baler_analysis::arrow::{ParquetFolder, ParquetSettings, TimePartition};
use baler_analysis::traces::{TraceAnalysis, TraceSettings};
use baler_common::record::{DynamicRecord, Value};
use baler_connector_kieker::types;
use serde_json::{Value as Json, json};

use super::python;
use super::records::{NOON, parcel};
use crate::traces::document;

/// The statements of the README's section, by the comments that they begin with.
fn statements() -> BTreeMap<&'static str, Vec<&'static str>> {
    let readme = include_str!("../../../src/arrow/README.md");
    let (_, section) = readme.split_once("## Five queries").unwrap();
    let (section, _) = section.split_once("\n## ").unwrap();
    let blocks = section.split("```sql\n-- ").skip(1);
    let blocks = blocks.map(|block| {
        let (name, sql) = block.split_once("```").unwrap().0.split_once('\n').unwrap();
        let parts = sql.split(';').map(str::trim);
        (name, parts.filter(|part| !part.is_empty()).collect())
    });
    blocks.collect()
}

/// A thousand traces of eight shapes in three seconds. Some take more than 100 ms, and one in seven
/// crosses hosts.
fn executions() -> Vec<DynamicRecord> {
    let catalog = types::catalog();
    let name = "kieker.common.record.controlflow.OperationExecutionRecord";
    let schema = catalog.get(name).unwrap();
    let mut records = Vec::new();
    for trace in 0..1_000_i64 {
        let start = NOON + trace * 3_000_000;
        // All durations are different.
        let took = 1_000_000 + (trace * 389 % 1_009) * 130_000;
        // The root; below it a call, one below that, and again a call below the root.
        let depths = [0, 1, 2, 1];
        for (eoi, ess) in (0..).zip(&depths[..usize::try_from(1 + trace % 4).unwrap()]) {
            let host = if trace % 7 == 0 && eoi == 2 {
                "host2"
            } else {
                "host1"
            };
            let tin = start + eoi * took / 10;
            let values = [
                Value::from(format!(
                    "public void shop.Part{}.run(int)",
                    (eoi + trace % 2) % 3
                )),
                Value::from("<no-session-id>"),
                Value::Signed(trace),
                Value::Signed(tin),
                Value::Signed(tin + took / (1 + ess)),
                Value::from(host),
                Value::Signed(eoi),
                Value::Signed(*ess),
            ];
            let tout = tin + took;
            records.push(DynamicRecord::new(Arc::clone(schema), Some(tout), values).unwrap());
        }
    }
    records
}

/// Three ends of calls that failed, of two causes.
fn failures() -> Vec<DynamicRecord> {
    let catalog = types::catalog();
    let name = "kieker.common.record.flow.trace.operation.AfterOperationFailedEvent";
    let schema = catalog.get(name).unwrap();
    let failures = ["full", "lost", "full"].map(|cause| {
        let values = schema.fields().iter().map(|field| match field.name() {
            "cause" => Value::from(cause),
            "operationSignature" | "classSignature" => Value::from("shop.Cart.add()"),
            _ => Value::Signed(1),
        });
        DynamicRecord::new(Arc::clone(schema), Some(1), values.collect::<Vec<_>>()).unwrap()
    });
    failures.to_vec()
}

fn is_close(found: &Json, expected: &Json) -> bool {
    match (found.as_f64(), expected.as_f64()) {
        (Some(found), Some(expected)) => (found - expected).abs() <= 1e-9 * expected.abs(),
        _ => found == expected,
    }
}

#[test]
fn the_queries_of_the_readme_find_what_the_analysis_of_traces_finds() {
    let folder = tempfile::tempdir().unwrap();
    let mut settings = ParquetSettings::default();
    settings.by_time = Some(TimePartition::Hour);
    let mut sink = ParquetFolder::new(folder.path().join("history"), settings);
    let mut analysis = TraceAnalysis::new(TraceSettings::default());
    let mut traces = Vec::new();
    let mut rate: BTreeMap<i64, u64> = BTreeMap::new();
    for (sequence, records) in (0..).zip(executions().chunks(1_000)) {
        let parcel = parcel(records, sequence);
        analysis.accept(&parcel, |_, _| {});
        sink.accept(parcel).unwrap();
    }
    sink.accept(parcel(&failures(), 99)).unwrap();
    sink.finish().unwrap();
    analysis.finish(|closed, _| {
        let trace = &closed.trace;
        for call in &trace.calls {
            *rate.entry(call.tin - call.tin % 1_000_000_000).or_default() += 1;
        }
        if trace.nanos() > 100_000_000 {
            traces.push((trace.nanos(), trace.id, trace.calls.len()));
        }
    });
    traces.sort_unstable_by(|one, other| other.cmp(one));
    assert!(traces.len() > 10 && traces.len() < 990, "{}", traces.len());
    let document = document(&analysis);
    let list = |name: &str| document[name].as_array().unwrap().clone();
    let milliseconds = |nanos: &Json| json!(nanos.as_f64().unwrap() / 1e6);
    let mut slowest = list("operations");
    slowest.sort_by(|one, other| {
        let mean = |it: &Json| it["mean_ns"].as_f64().unwrap();
        mean(other).total_cmp(&mean(one))
    });
    // The largest time of the analysis is exact to 1 %.
    let slowest = slowest.iter();
    let slowest =
        slowest.map(|it| json!([it["operation"], it["count"], milliseconds(&it["mean_ns"])]));
    let mut edges = list("dependencies");
    edges.retain(|it| it["from"] != "'Entry'");
    // Edges with equal counts stay in the order of names.
    edges.sort_by_key(|it| std::cmp::Reverse(it["count"].as_u64()));
    let edges = edges.iter();
    let edges = edges.map(|it| json!([it["from"], it["to"], it["count"]]));
    let traces = traces.into_iter();
    let traces = traces.map(|(nanos, id, calls)| json!([id, calls, milliseconds(&json!(nanos))]));
    let expected = [
        ("The slowest operations", slowest.collect()),
        (
            "The edges of the call graph: the caller is the last earlier call that is one level higher",
            edges.collect(),
        ),
        ("Traces that took more than 100 ms", traces.collect()),
        (
            "Calls that began in each second, by its beginning in Unix nanoseconds",
            rate.into_iter().map(|rate| json!(rate)).collect(),
        ),
        (
            "Errors by operation and cause",
            vec![
                json!(["shop.Cart.add()", "full", 2]),
                json!(["shop.Cart.add()", "lost", 1]),
            ],
        ),
    ];
    let statements = statements();
    assert_eq!(statements.len(), 2 + expected.len());
    for (beginning, engine) in [("DuckDB", "duckdb"), ("DataFusion", "datafusion")] {
        for (name, expected) in &expected {
            let expected: &Vec<Json> = expected;
            let all = [&statements[beginning][..], &statements[name][..]].concat();
            let found = python::last_rows(folder.path(), engine, &all);
            assert_eq!(found.len(), expected.len(), "{engine}: {name}");
            for (found, expected) in found.iter().zip(expected) {
                let expected = expected.as_array().unwrap().iter();
                let mut columns = found.as_array().unwrap().iter().zip(expected);
                assert!(
                    columns.all(|(found, expected)| is_close(found, expected)),
                    "{engine}: {name}: {found}"
                );
            }
        }
    }
}
