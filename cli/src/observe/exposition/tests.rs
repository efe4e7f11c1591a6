use super::*;

#[test]
fn values_of_a_metric_stand_together_and_labels_are_escaped() {
    let mut exposition = Exposition::default();
    exposition.set(&metric::LANE_LAG, &["0", "a\"b\\c\nd"], 3_usize);
    exposition.set(&metric::RECORDS_EMITTED, &[], 7_u64);
    exposition.set(&metric::LANE_LAG, &["1", "2"], 0_usize);
    assert_eq!(
        exposition.text(),
        "# HELP baler_records_emitted_total Records emitted, taken or not.\n\
             # TYPE baler_records_emitted_total counter\n\
             baler_records_emitted_total 7\n\
             # HELP baler_lane_lag_chunks Chunks of a lane that were written and not yet settled, \
             where the medium says.\n\
             # TYPE baler_lane_lag_chunks gauge\n\
             baler_lane_lag_chunks{worker=\"0\",lane=\"a\\\"b\\\\c\\nd\"} 3\n\
             baler_lane_lag_chunks{worker=\"1\",lane=\"2\"} 0\n"
    );
}
