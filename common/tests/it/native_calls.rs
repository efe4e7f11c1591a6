//! Executions of operations in the native container, nested as they are and as they should not be.

use std::sync::Arc;

use baler_common::container::Compression;
use baler_common::record::{BatchBuilder, DynamicRecord, RecordBatch, Schema, Value};
use baler_connector_kieker::types;
use proptest::collection::vec;
use proptest::prelude::*;

use crate::arbitrary;
use crate::native_chunks::{PREFIX_BYTES, decoder, encode, header, reseal};

fn schema() -> Arc<Schema> {
    let name = "kieker.common.record.controlflow.OperationExecutionRecord";
    Arc::clone(types::catalog().get(name).unwrap())
}

/// One execution; its strings are numbers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call {
    pub(crate) trace: i64,
    pub(crate) session: u32,
    pub(crate) tin: i64,
    pub(crate) tout: i64,
    pub(crate) eoi: i64,
    pub(crate) ess: i64,
    pub(crate) logged: i64,
}

impl Call {
    /// Returns the call by a clock that moves by `step` nanoseconds where this one moves by one.
    pub(crate) fn by_clock(self, step: i64) -> Self {
        let start = 1_700_000_000_000_000_000;
        let time = |time: i64| start + (time - start) * step;
        Self {
            tin: time(self.tin),
            tout: time(self.tout),
            logged: time(self.logged),
            ..self
        }
    }
}

pub(crate) fn record(call: &Call) -> DynamicRecord {
    let values = [
        Value::from(format!("public void shop.Catalog.find{}()", call.eoi % 7)),
        Value::from(format!("{:032x}", call.session)),
        Value::Signed(call.trace),
        Value::Signed(call.tin),
        Value::Signed(call.tout),
        Value::from("host1"),
        Value::Signed(call.eoi),
        Value::Signed(call.ess),
    ];
    DynamicRecord::new(schema(), Some(call.logged), values).unwrap()
}

/// Traces of some threads, merged by the ends of their calls.
pub(crate) fn nested(threads: i64, traces: i64, depth: i64) -> Vec<Call> {
    let mut calls = Vec::new();
    for thread in 0..threads {
        let mut now = 1_700_000_000_000_000_000 + thread * 17;
        for trace in 0..traces {
            let mut eoi = 0;
            let number = trace * threads + thread;
            let begin = calls.len();
            tree(number, depth, 0, &mut now, &mut eoi, &mut calls);
            assert_eq!(calls.len() - begin, usize::try_from(eoi).unwrap());
            now += 1_000;
        }
    }
    calls.sort_by_key(|call| call.tout);
    calls
}

fn tree(trace: i64, depth: i64, ess: i64, now: &mut i64, eoi: &mut i64, calls: &mut Vec<Call>) {
    let (tin, order) = (*now, *eoi);
    *eoi += 1;
    *now += 130 + (trace * 7 + order * 13) % 90;
    if ess < depth {
        for _ in 0..1 + (trace + order) % 3 {
            tree(trace, depth, ess + 1, now, eoi, calls);
            *now += 110 + (trace * 5 + order * 11) % 70;
        }
    }
    calls.push(Call {
        trace: 5_000_000_000 + trace,
        session: u32::try_from(trace % 5).unwrap(),
        tin,
        tout: *now,
        eoi: order,
        ess,
        logged: *now,
    });
}

fn batch(calls: &[Call]) -> RecordBatch {
    let mut builder = BatchBuilder::new();
    for call in calls {
        builder.push_dynamic(&record(call)).unwrap();
    }
    builder.take()
}

/// Returns how many bytes each row takes in the columns that nesting determines.
fn survives(calls: &[Call]) -> f64 {
    let batch = batch(calls);
    let chunk = encode(&batch, &header(1, 0), Compression::None);
    let (decoded, layout) = decoder().decode_with_layout(&chunk).unwrap();
    assert_eq!(decoded.batch, batch);
    let told = ["traceId", "sessionId", "eoi", "ess"];
    let told = layout
        .columns
        .iter()
        .filter(|it| told.contains(&&*it.field));
    let bytes: usize = told.map(|column| column.bytes).sum();
    bytes as f64 / calls.len() as f64
}

#[test]
fn what_follows_from_nesting_takes_few_bits() {
    let calls = nested(4, 60, 4);
    assert!(calls.len() > 1_000, "{}", calls.len());
    for chunk in calls.chunks(1_000) {
        let bytes = survives(chunk);
        // The chunk must contain where it cuts traces, which is a larger part of a short chunk.
        let most = if chunk.len() < 1_000 { 1.7 } else { 1.5 };
        assert!(bytes < most, "{bytes} of {}", chunk.len());
    }
    for chunk in calls.chunks(37) {
        survives(chunk);
    }
}

#[test]
fn a_clock_s_step_takes_a_few_bytes_a_chunk() {
    let calls = nested(4, 60, 4);
    let calls = calls.get(..1_024).unwrap();
    let chunk = |step| {
        let calls: Vec<_> = calls.iter().map(|call| call.by_clock(step)).collect();
        survives(&calls);
        encode(&batch(&calls), &header(1, 0), Compression::None).len()
    };
    let fine = chunk(1);
    for step in [10, 100, 1_000, 1_000_000] {
        let coarse = chunk(step);
        assert!(coarse <= fine + 16, "{step}: {coarse} instead of {fine}");
    }
}

#[test]
fn calls_without_traces_and_traces_of_one_call_survive() {
    let mut calls = nested(3, 20, 2);
    for call in &mut calls {
        (call.trace, call.eoi, call.ess, call.session) = (-1, -1, -1, 0);
    }
    survives(&calls);
    for (number, call) in (0..).zip(&mut calls) {
        (call.trace, call.eoi, call.ess) = (number, 0, 0);
    }
    survives(&calls);
}

#[test]
fn more_traces_at_once_than_there_are_places_survive() {
    // Each of them stays open, and has rows enough.
    for traces in [255, 256, 257, 600] {
        let call = |number: i64| Call {
            trace: number % traces,
            session: 1,
            tin: number,
            tout: number + 10,
            eoi: number,
            ess: 3,
            logged: -1,
        };
        survives(&(0..traces * 4).map(call).collect::<Vec<_>>());
    }
}

fn wild() -> impl Strategy<Value = Vec<Call>> {
    let number = || prop_oneof![4 => -2_i64..40, 1 => i64::from(i32::MIN)..=i64::from(i32::MAX)];
    let time = || prop_oneof![3 => 0_i64..5_000, 1 => any::<i64>()];
    let call = (
        0_i64..4,
        0_u32..3,
        time(),
        time(),
        number(),
        number(),
        time(),
    );
    let call = call.prop_map(|(trace, session, tin, tout, eoi, ess, logged)| Call {
        trace,
        session,
        tin,
        tout,
        eoi,
        ess,
        logged,
    });
    vec(call, 1..60)
}

/// Calls whose depth only falls by callers, as for nested calls, with arbitrary order indices: as
/// if chunks cut traces, and stranger.
fn nested_in_any_order() -> impl Strategy<Value = Vec<Call>> {
    let step = prop_oneof![4 => Just(0_i64), 4 => 1_i64..4, 1 => 4_i64..9];
    let call = (
        0_usize..4,
        step,
        proptest::option::of(0_i64..40),
        1_i64..900,
    );
    vec(call, 1..120).prop_map(|calls| {
        let mut places = [(1_i64, 0_i64); 4];
        let (mut now, mut trace) = (5_000, 4);
        let call = |(place, step, eoi, time): (usize, i64, Option<i64>, i64)| {
            let number: &mut (i64, i64) = places.get_mut(place).unwrap();
            let ess = (number.0 + step - 1).min(31);
            let eoi = eoi.unwrap_or(number.1 + step);
            *number = (if ess == 0 { 1 } else { ess }, eoi.max(number.1));
            if ess == 0 {
                trace += 4;
            }
            now += time;
            Call {
                trace: i64::try_from(place).unwrap() + 4 * (trace / 4 % 3),
                session: 1,
                tin: now - 3 * time,
                tout: now,
                eoi,
                ess,
                logged: now,
            }
        };
        calls.into_iter().map(call).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn calls_that_nest_in_any_order_survive(calls in nested_in_any_order()) {
        survives(&calls);
    }

    #[test]
    fn calls_that_do_not_nest_survive(wild in wild(), swaps in vec((0_usize..200, wild()), 0..4)) {
        survives(&wild);
        // Calls that nest, but for some.
        let mut calls = nested(2, 4, 3);
        for (at, odd) in swaps {
            let at = at % calls.len();
            calls[at] = odd[0];
            calls.swap(at, odd.len() % 40);
        }
        survives(&calls);
    }

    #[test]
    fn broken_tables_are_refused_or_survive(
        wild in wild(),
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut calls = nested(2, 2, 2);
        calls.extend(wild);
        let mut chunk = encode(&batch(&calls), &header(1, 0), Compression::None);
        for (at, byte) in changes {
            let at = PREFIX_BYTES + at.index(chunk.len() - PREFIX_BYTES);
            chunk[at] = byte;
        }
        reseal(&mut chunk);
        if let Ok(decoded) = decoder().decode(&chunk) {
            let header = decoded.summary.header.unwrap();
            let again = encode(&decoded.batch, &header, Compression::None);
            let again = decoder().decode(&again).unwrap();
            let records = arbitrary::records_of(&decoded.batch);
            prop_assert_eq!(arbitrary::records_of(&again.batch), records);
        }
    }
}
