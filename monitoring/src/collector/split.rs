//! Taking a batch apart that does not fit into a chunk.

use baler_common::record::{BatchBuilder, PushError, RecordBatch, RecordRef};

/// The first and the second half of the records, in order.
///
/// Halving as often as necessary is what the OpenTelemetry Collector does with payloads that are
/// too large (opentelemetry-collector-contrib, pull request 48090).
///
/// # Errors
///
/// [`PushError`] when a record of the batch cannot be added to another, which a batch that was
/// built or decoded rules out.
pub(super) fn halves(batch: &RecordBatch) -> Result<(RecordBatch, RecordBatch), PushError> {
    let middle = batch.len() / 2;
    let mut index = 0_usize;
    partition(batch, |_| {
        let first = index < middle;
        index = index.saturating_add(1);
        first
    })
}

/// The records of other types, and those of the type with this name, each in order.
///
/// # Errors
///
/// As [`halves`].
pub(super) fn apart(
    batch: &RecordBatch,
    record: &str,
) -> Result<(RecordBatch, RecordBatch), PushError> {
    partition(batch, |candidate| candidate.schema().name() != record)
}

/// The records without those of other versions of the type with this name than the first, and
/// these, each in order.
///
/// # Errors
///
/// As [`halves`].
pub(super) fn versions(
    batch: &RecordBatch,
    record: &str,
) -> Result<(RecordBatch, RecordBatch), PushError> {
    let mut records = batch.records();
    let first = records.find(|candidate| candidate.schema().name() == record);
    partition(batch, |candidate| {
        let schema = candidate.schema();
        schema.name() != record || first.as_ref().is_none_or(|first| first.schema() == schema)
    })
}

fn partition(
    batch: &RecordBatch,
    mut in_first: impl FnMut(&RecordRef<'_>) -> bool,
) -> Result<(RecordBatch, RecordBatch), PushError> {
    let (mut first, mut second) = (BatchBuilder::new(), BatchBuilder::new());
    for record in batch.records() {
        let half = if in_first(&record) {
            &mut first
        } else {
            &mut second
        };
        half.push_ref(record)?;
    }
    Ok((first.take(), second.take()))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use baler_common::record::{DynamicRecord, Field, FieldType, Schema, Value};

    use super::*;

    fn batch(types: &[&str]) -> RecordBatch {
        let mut builder = BatchBuilder::new();
        for (number, name) in types.iter().enumerate() {
            let fields = vec![Field::new("number", FieldType::U64)];
            let schema = Arc::new(Schema::new(*name, fields).unwrap());
            let values = vec![Value::Unsigned(u64::try_from(number).unwrap())];
            let record = DynamicRecord::new(schema, Some(7), values).unwrap();
            builder.push_dynamic(&record).unwrap();
        }
        builder.take()
    }

    fn numbers(batch: &RecordBatch) -> Vec<u64> {
        batch
            .records()
            .map(|record| match DynamicRecord::from(record).values() {
                [Value::Unsigned(number)] => *number,
                other => panic!("{other:?}"),
            })
            .collect()
    }

    #[test]
    fn halves_keep_the_order_and_lose_nothing() {
        let (first, second) = halves(&batch(&["a", "b", "a", "b", "a"])).unwrap();
        assert_eq!(numbers(&first), [0, 1]);
        assert_eq!(numbers(&second), [2, 3, 4]);
        assert_eq!(second.records().next().unwrap().timestamp(), Some(7));
    }

    #[test]
    fn one_type_is_taken_out_of_the_others() {
        let (others, of_type) = apart(&batch(&["a", "b", "a", "c"]), "a").unwrap();
        assert_eq!(numbers(&others), [1, 3]);
        assert_eq!(numbers(&of_type), [0, 2]);
    }
}
