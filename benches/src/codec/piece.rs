//! The records of one chunk, as the formats like to take them.

use std::collections::HashMap;

use baler_common::record::RecordBatch;
use baler_rig::workload::Call;
use serde::{Deserialize, Serialize};

use super::recording::{PlainCall, Recording};
use crate::Failure;

/// The records of one chunk: the same ones in each field.
pub(super) struct Piece {
    /// Row by row, with one string table.
    pub(super) table: Tabled,
    /// Column by column, with a string table a column.
    pub(super) columns: Columns,
    /// As the collector hands it to a serializer.
    pub(super) batch: RecordBatch,
}

/// Rows that name their strings by position.
#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct Tabled {
    /// Each once, in order of first use.
    pub(super) strings: Vec<String>,
    pub(super) rows: Vec<TableRow>,
}

/// A row that names its strings by position.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TableRow {
    pub(super) operation_signature: u32,
    pub(super) session_id: u32,
    pub(super) trace_id: i64,
    pub(super) tin: i64,
    pub(super) tout: i64,
    pub(super) hostname: u32,
    pub(super) eoi: i32,
    pub(super) ess: i32,
}

impl TableRow {
    /// With its strings; `None` if the table has not all of them.
    pub(super) fn plain<'a, S: AsRef<str>>(&self, strings: &'a [S]) -> Option<PlainCall<'a>> {
        let string = |id: u32| {
            let index = usize::try_from(id).ok()?;
            strings.get(index).map(AsRef::as_ref)
        };
        Some(PlainCall {
            operation_signature: string(self.operation_signature)?,
            session_id: string(self.session_id)?,
            trace_id: self.trace_id,
            tin: self.tin,
            tout: self.tout,
            hostname: string(self.hostname)?,
            eoi: self.eoi,
            ess: self.ess,
        })
    }
}

/// Columns, and a string table for each that has strings.
#[derive(Debug, Clone, Default)]
pub(super) struct Columns {
    pub(super) operation_signature: TextColumn,
    pub(super) session_id: TextColumn,
    pub(super) hostname: TextColumn,
    pub(super) trace_id: Vec<i64>,
    pub(super) tin: Vec<i64>,
    pub(super) tout: Vec<i64>,
    pub(super) eoi: Vec<i32>,
    pub(super) ess: Vec<i32>,
}

/// A column of strings.
#[derive(Debug, Clone, Default)]
pub(super) struct TextColumn {
    /// Each once, in order of first use.
    pub(super) texts: Vec<String>,
    /// For each row its text's position.
    pub(super) ids: Vec<u16>,
}

impl Piece {
    /// The recording in chunks of so many records.
    ///
    /// # Errors
    ///
    /// A record cannot be built, or a chunk has more strings than Arrow's dictionaries here.
    pub(super) fn all(recording: &Recording, chunk_records: usize) -> Result<Vec<Self>, Failure> {
        let chunk_records = chunk_records.max(1);
        let batches = recording.batches(chunk_records)?;
        let chunks = recording.calls().chunks(chunk_records);
        chunks
            .zip(batches)
            .map(|(calls, batch)| {
                Ok(Self {
                    table: tabled(recording, calls),
                    columns: columns(recording, calls)?,
                    batch,
                })
            })
            .collect()
    }

    /// Row by row, each with its strings.
    pub(super) fn plain(&self) -> impl ExactSizeIterator<Item = Option<PlainCall<'_>>> {
        let Tabled { strings, rows } = &self.table;
        rows.iter().map(|row| row.plain(strings))
    }
}

/// Numbers texts in order of first use.
#[derive(Default)]
struct Numbering<'a> {
    known: HashMap<&'a str, u32>,
    texts: Vec<String>,
}

impl<'a> Numbering<'a> {
    fn id(&mut self, text: &'a str) -> u32 {
        let next = u32::try_from(self.texts.len()).unwrap_or(u32::MAX);
        *self.known.entry(text).or_insert_with(|| {
            self.texts.push(text.to_owned());
            next
        })
    }

    fn short_id(&mut self, text: &'a str) -> Result<u16, Failure> {
        u16::try_from(self.id(text)).map_err(Failure::cannot("number the strings of a chunk"))
    }
}

fn tabled(recording: &Recording, calls: &[Call]) -> Tabled {
    let mut numbering = Numbering::default();
    let mut rows = Vec::with_capacity(calls.len());
    for call in calls {
        let call = recording.plain(call);
        rows.push(TableRow {
            operation_signature: numbering.id(call.operation_signature),
            session_id: numbering.id(call.session_id),
            trace_id: call.trace_id,
            tin: call.tin,
            tout: call.tout,
            hostname: numbering.id(call.hostname),
            eoi: call.eoi,
            ess: call.ess,
        });
    }
    Tabled {
        strings: numbering.texts,
        rows,
    }
}

fn columns(recording: &Recording, calls: &[Call]) -> Result<Columns, Failure> {
    let mut operations = Numbering::default();
    let mut sessions = Numbering::default();
    let mut hosts = Numbering::default();
    let mut columns = Columns::default();
    for call in calls {
        let call = recording.plain(call);
        let ids = &mut columns.operation_signature.ids;
        ids.push(operations.short_id(call.operation_signature)?);
        columns
            .session_id
            .ids
            .push(sessions.short_id(call.session_id)?);
        columns.hostname.ids.push(hosts.short_id(call.hostname)?);
        columns.trace_id.push(call.trace_id);
        columns.tin.push(call.tin);
        columns.tout.push(call.tout);
        columns.eoi.push(call.eoi);
        columns.ess.push(call.ess);
    }
    columns.operation_signature.texts = operations.texts;
    columns.session_id.texts = sessions.texts;
    columns.hostname.texts = hosts.texts;
    Ok(columns)
}
