use super::*;

/// The cost of looks, of messages as if each were made by itself, of records and of bytes.
type Cost = fn(looks: f64, messages: f64, records: f64, bytes: f64) -> f64;

fn points(sizes: &[u32], cpu: Cost) -> Vec<Point> {
    let point = |size: &u32| {
        let set = Point::unmeasured(*size, 500.0, 10_000.0);
        let payload = 10_000.0 * (20.0 + 200.0 / f64::from(*size).sqrt());
        let bytes = payload + 60.0 * set.messages;
        Point {
            payload,
            load_cpu: 0.01,
            cpu: 0.01 + cpu(set.looks, set.single_messages, set.rate, bytes),
            bytes,
            p99: 1.5 + 0.99 * set.fill_ms,
            ..set
        }
    };
    sizes.iter().map(point).collect()
}

fn assert_predicts(model: &CostModel, sizes: &[u32], cost: Cost) {
    for point in points(sizes, cost) {
        let bytes = model.bytes(&point);
        assert!((bytes / point.bytes - 1.0).abs() < 1e-6);
        assert!((model.cpu(&point, bytes) / point.cpu - 1.0).abs() < 1e-6);
        let said = model.predict(
            point.chunk_records,
            500.0,
            10_000.0,
            point.payload / 10_000.0,
            0.01,
        );
        assert!((said.writer_cpu_seconds_per_second / point.cpu - 1.0).abs() < 1e-6);
        assert!((said.latency_ms_p99 / point.p99 - 1.0).abs() < 1e-6);
    }
}

#[test]
fn factors_of_a_linear_cost_are_found_and_sizes_between_are_predicted() {
    let cost: Cost = |looks, messages, records, _| looks * 2e-4 + messages * 8e-6 + records * 2e-7;
    let model = CostModel::of(&points(&[1, 16, 32, 128, 1_024], cost), "none");
    assert!(
        (model.cpu_seconds_per_look - 2e-4).abs() < 1e-8,
        "{model:?}"
    );
    assert!((model.cpu_seconds_per_message - 8e-6).abs() < 1e-9);
    assert!((model.cpu_seconds_per_record - 2e-7).abs() < 1e-10);
    assert!(model.cpu_seconds_per_byte.abs() < 1e-12);
    assert!((model.wire_bytes_per_message - 60.0).abs() < 1e-6);
    assert!((model.latency_ms_p99_base - 1.5).abs() < 1e-6);
    assert_predicts(&model, &[2, 64, 512], cost);
}

#[test]
fn messages_of_one_look_cost_less_each_and_single_ones_what_they_do() {
    let made = |size| {
        let point = Point::unmeasured(size, 500.0, 10_000.0);
        point.single_messages / point.messages
    };
    // A chunk of 1,024 takes longer to fill than looks are apart; sixteen looks find 39 of 16.
    assert!((made(1_024) - 1.0).abs() < 1e-9);
    assert!((made(16) - 39.0625_f64.powf(TOGETHER - 1.0)).abs() < 1e-9);
    assert!(made(1) < made(16) && made(16) < made(128) && made(128) < 1.0);
}

#[test]
fn what_a_byte_costs_is_told_from_more_sizes() {
    let cost: Cost = |looks, messages, records, bytes| {
        looks * 2e-4 + messages * 8e-6 + records * 2e-7 + bytes * 3e-9
    };
    let sizes = [1, 16, 32, 128, 512, 1_024, 2_048];
    let model = CostModel::of(&points(&sizes, cost), "none");
    assert!(
        (model.cpu_seconds_per_byte - 3e-9).abs() < 1e-12,
        "{model:?}"
    );
    assert_predicts(&model, &[2, 64, 256], cost);
}

#[test]
fn no_factor_is_negative() {
    // Larger chunks cost more than their records and bytes explain.
    let cost: Cost = |_, messages, records, _| records * 1e-6 - messages * 2e-7;
    let model = CostModel::of(&points(&[1, 16, 32, 128], cost), "none");
    assert!(model.cpu_seconds_per_message >= 0.0 && model.cpu_seconds_per_look >= 0.0);
    assert!(model.cpu_seconds_per_record > 0.0);
}
