use baler_common::record::{BatchBuilder, DynamicRecord, Field, Value};

use super::*;

#[test]
fn keys_that_would_take_gigabytes_are_refused() {
    let schema = Schema::new("t", [Field::new("key", FieldType::String)]).unwrap();
    let key = "k".repeat(1 << 20);
    let record = DynamicRecord::new(Arc::new(schema), None, [Value::from(key)]).unwrap();
    let mut batch = BatchBuilder::new();
    batch.push_dynamic(&record).unwrap();
    let batch = batch.take();
    // The key is in the chunk once, and in each of these maps.
    let maps = |count: u32| {
        let keys = Column::String(vec![0; count as usize]);
        let values = Column::Bool(vec![true; count as usize]);
        let items = Column::Record(RecordColumn {
            len: count as usize,
            fields: vec![keys, values],
        });
        let ends = (1..=count).collect();
        let column = Column::List(Box::new(ListColumn { ends, items }));
        let context = Context::new(batch.strings(), Times::Nanos).unwrap();
        context.array(&column, &FieldType::Bool.map(), Role::Plain)
    };
    assert_eq!(maps(3).unwrap().len(), 3);
    let error = maps(1_025).unwrap_err().to_string();
    assert!(error.contains("more than 1 GiB"), "{error}");
}
