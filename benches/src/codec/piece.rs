//! The records of one chunk, in the forms that the formats need.

use std::collections::HashMap;

use baler_common::record::{BatchBuilder, RecordBatch};
use baler_rig::workload::{Call, Executions, Names, PlainCall};
use serde::{Deserialize, Serialize};

use crate::Failure;

/// The records of one chunk: the same records in each field.
pub(super) struct Piece<'a> {
    /// Row by row.
    pub(super) calls: Vec<PlainCall<'a>>,
    /// Row by row, with one string table.
    pub(super) table: Table<'a>,
    /// In the form that the collector passes to a serializer.
    pub(super) batch: RecordBatch,
}

/// Rows that refer to their strings by position.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Table<'a> {
    /// Each once, in order of first use.
    #[serde(borrow)]
    pub(super) strings: Vec<&'a str>,
    pub(super) rows: Vec<TableRow>,
}

/// A row that refers to its strings by position.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TableRow {
    operation_signature: u32,
    session_id: u32,
    trace_id: i64,
    tin: i64,
    tout: i64,
    hostname: u32,
    eoi: i32,
    ess: i32,
}

impl<'a> Piece<'a> {
    /// Splits these calls into chunks of this number of records.
    ///
    /// # Errors
    ///
    /// A batch cannot take a record.
    pub(super) fn all(
        names: &'a Names,
        calls: &[Call],
        chunk_records: usize,
    ) -> Result<Vec<Self>, Failure> {
        let mut executions = Executions::new(names);
        let chunks = calls.chunks(chunk_records.max(1));
        chunks
            .map(|calls| Self::new(names, calls, &mut executions))
            .collect()
    }

    fn new(names: &'a Names, calls: &[Call], executions: &mut Executions) -> Result<Self, Failure> {
        let mut builder = BatchBuilder::new();
        for call in calls {
            let pushed = builder.push(executions.of(call));
            pushed.map_err(Failure::cannot("make the load"))?;
        }
        let calls: Vec<_> = calls.iter().map(|call| names.plain(call)).collect();
        Ok(Self {
            table: table(&calls),
            calls,
            batch: builder.take(),
        })
    }
}

fn table<'a>(calls: &[PlainCall<'a>]) -> Table<'a> {
    let mut known = HashMap::new();
    let mut table = Table::default();
    for call in calls {
        let mut id = |text: &'a str| {
            let next = u32::try_from(table.strings.len()).expect("a piece is in memory");
            *known.entry(text).or_insert_with(|| {
                table.strings.push(text);
                next
            })
        };
        table.rows.push(TableRow {
            operation_signature: id(call.operation_signature),
            session_id: id(call.session_id),
            trace_id: call.trace_id,
            tin: call.tin,
            tout: call.tout,
            hostname: id(call.hostname),
            eoi: call.eoi,
            ess: call.ess,
        });
    }
    table
}
