use super::*;

const WAIT: Duration = Duration::from_millis(500);

#[test]
fn chunk_closes_on_whichever_of_records_and_bytes_comes_first() {
    let rule = ClosingRule::new(10, 1_000, WAIT);
    assert_eq!(rule.full(0, 0), None);
    assert_eq!(rule.full(9, 999), None);
    assert_eq!(rule.full(10, 10), Some(ClosedBy::Records));
    assert_eq!(rule.full(9, 1_000), Some(ClosedBy::Bytes));
}

#[test]
fn chunk_closes_when_its_oldest_record_has_waited() {
    let rule = ClosingRule::new(10, 1_000, WAIT);
    let oldest = Instant::now();
    assert_eq!(rule.closes_at(oldest), Some(oldest + WAIT));
}

#[test]
fn threshold_counts_what_is_sent_and_not_the_rows() {
    let mut rule = ClosingRule::new(usize::MAX, 1_000, WAIT);
    for _ in 0..50 {
        rule.learn(4_000, 1_000);
    }
    assert_eq!(rule.full(1, 3_900), None);
    assert_eq!(rule.full(1, 4_000), Some(ClosedBy::Bytes));
    for _ in 0..50 {
        rule.learn(1_000_000, 1);
    }
    assert_eq!(
        rule.full(1, 16_000),
        Some(ClosedBy::Bytes),
        "the batch stays bounded"
    );
}

#[test]
fn budget_bounds_the_rows_of_a_batch() {
    let mut rule = ClosingRule::new(usize::MAX, 1_000, WAIT).within_budget();
    rule.learn(1_000_000, 1);
    assert_eq!(rule.full(1, 1_999), None);
    assert_eq!(rule.full(1, 2_000), Some(ClosedBy::Bytes));
}

#[test]
fn idle_collector_looks_rarely_but_twice_in_a_wait_time() {
    let rule = ClosingRule::new(10, 1_000, WAIT);
    assert_eq!(rule.tick(), WAIT / 8);
    assert_eq!(rule.poll_interval(Duration::MAX, Duration::MAX), WAIT / 2);
    let hasty = ClosingRule::new(10, 1_000, Duration::ZERO);
    assert_eq!(hasty.tick(), LEAST_TICK);
}

#[test]
fn chunk_is_looked_for_when_it_should_be_full_and_several_small_ones_together() {
    let rule = ClosingRule::new(10, 1_000, WAIT);
    let ms = Duration::from_millis;
    assert_eq!(rule.poll_interval(ms(102), ms(25)), ms(102));
    assert_eq!(rule.poll_interval(ms(3), ms(25)), ms(25));
    assert_eq!(rule.poll_interval(ms(3), ms(1)), WAIT / 64);
    assert_eq!(rule.poll_interval(ms(3), ms(200)), WAIT / 8);
    assert_eq!(rule.poll_interval(Duration::MAX, ms(25)), WAIT / 2);
}
