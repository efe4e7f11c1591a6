use baler_common::record::{Field, FieldType, RowWriter};

use super::*;

fn lane(router: &mut LaneRouter, schema: &Arc<Schema>, number: i64) -> usize {
    let mut fields = Vec::new();
    RowWriter::new(&mut fields).i64(number);
    router.lane_of_record(schema, &fields)
}

fn schema(field: &str) -> Arc<Schema> {
    Arc::new(Schema::new("type", vec![Field::new(field, FieldType::I64)]).unwrap())
}

#[test]
fn traces_stay_together_and_are_spread_evenly() {
    let mut router = LaneRouter::new(4);
    let schema = schema("traceId");
    let mut counts = [0; 4];
    for trace in 0..4_000 {
        let first = lane(&mut router, &schema, trace);
        assert_eq!(lane(&mut router, &schema, trace), first);
        counts[first] += 1;
    }
    assert!(
        counts.iter().all(|count| (900..1_100).contains(count)),
        "{counts:?}"
    );
}

#[test]
fn records_without_a_trace_go_to_the_first_lane() {
    let mut router = LaneRouter::new(4);
    let (with, without) = (schema("trace_id"), schema("count"));
    for number in 0..50 {
        assert_eq!(lane(&mut router, &without, number), 0);
        lane(&mut router, &with, number);
    }
}
