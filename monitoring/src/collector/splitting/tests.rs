use baler_common::record::{DynamicRecord, Field, FieldType, Value};

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
