//! The policy alone, and with a simulated collector.

use proptest::prelude::*;

use super::*;

const MS: Duration = Duration::from_millis(1);

fn tuning(max_latency: Duration) -> Tuning {
    Tuning {
        max_latency,
        max_wait: None,
        chunk_bytes: 256 << 10,
        queue_bytes: 16 << 20,
    }
}

/// The behaviour of a collector with a tuner, by a clock that the test moves.
struct Played {
    tuner: Tuner,
    now: Instant,
    /// The starts of the earlier rounds.
    polled_at: Instant,
    /// The times at which the records in the queues and in the batch were emitted.
    queued: Vec<Instant>,
    batch: Vec<Instant>,
    /// Since when the batch's oldest record may have waited.
    oldest: Option<Instant>,
    taken: u64,
    polls: u64,
    sizes: Vec<usize>,
    longest: Duration,
    most_queued: usize,
    /// The medium's time for a chunk.
    medium: Duration,
    /// The number of chunks whose first record was confirmed after the limit.
    broken: usize,
}

/// This number of unread records wakes the collector.
const WAKE: usize = (4 << 20) / 64;

impl Played {
    fn new(tuning: Tuning) -> Self {
        let now = Instant::now();
        Self {
            tuner: Tuner::new(tuning, now),
            now,
            polled_at: now,
            queued: Vec::new(),
            batch: Vec::new(),
            oldest: None,
            taken: 0,
            polls: 0,
            sizes: Vec::new(),
            longest: Duration::ZERO,
            most_queued: 0,
            medium: Duration::ZERO,
            broken: 0,
        }
    }

    fn close(&mut self) {
        self.oldest = None;
        let records = self.batch.len();
        if records == 0 {
            return;
        }
        let first = self.batch.iter().min().map(|emitted| self.now - *emitted);
        self.batch.clear();
        let waited = first.unwrap_or_default();
        self.longest = self.longest.max(waited);
        if waited + self.medium > self.tuner.tuning.max_latency {
            self.broken += 1;
        }
        self.tuner.encoded(records, records * 64, 200 + records * 6);
        self.sizes.push(records);
    }

    fn poll(&mut self) {
        self.polls += 1;
        self.most_queued = self.most_queued.max(self.queued.len());
        let began = self.polled_at;
        self.polled_at = self.now;
        for emitted in std::mem::take(&mut self.queued) {
            self.oldest.get_or_insert(began);
            self.batch.push(emitted);
            self.taken += 1;
            if self.batch.len() >= self.tuner.choice().records {
                self.close();
            }
        }
        let wait = self.tuner.choice().wait;
        if self.oldest.is_some_and(|oldest| oldest + wait <= self.now) {
            self.close();
        }
        self.tuner.polled(self.taken, self.now);
    }

    /// When the tick is over, or the oldest record has to leave.
    fn next_poll(&self) -> Instant {
        let choice = self.tuner.choice();
        let tick = self.polled_at + choice.poll_interval;
        let due = self.oldest.map(|oldest| oldest + choice.wait);
        due.into_iter().fold(tick, Instant::min)
    }

    /// Emits records, each this long after the one before.
    fn come(&mut self, after: impl IntoIterator<Item = Duration>) {
        for after in after {
            let at = self.now + after;
            self.pass_to(at);
            self.queued.push(at);
            if self.queued.len() >= WAKE {
                self.poll();
            }
        }
    }

    fn pass_to(&mut self, at: Instant) {
        while self.next_poll() <= at {
            self.now = self.next_poll().max(self.now);
            self.poll();
        }
        self.now = at;
    }

    fn at_rate(&mut self, rate: u32, ms: u32) {
        let every = Duration::from_secs(1) / rate;
        let records = usize::try_from(u64::from(rate) * u64::from(ms) / 1_000).unwrap();
        self.come(std::iter::repeat_n(every, records));
    }
}

#[test]
fn wait_time_closes_chunks_at_low_rates_with_one_look_each() {
    let mut played = Played::new(tuning(MS * 100));
    played.at_rate(100, 10_000);
    let wait = played.tuner.choice().wait;
    let chunks = played.sizes.len() as u64;
    assert!(played.longest <= wait);
    assert!(played.polls <= chunks + 2, "{} {chunks}", played.polls);
    // Half of the limit is kept for the medium.
    assert_eq!(wait, MS * 50);
    assert!(played.sizes[8..].iter().all(|size| (4..=6).contains(size)));
    assert!((4..=6).contains(&played.tuner.choice().expected));
    assert_eq!(played.tuner.choice().poll_interval, wait);
}

#[test]
fn largest_useful_size_closes_chunks_at_high_rates_with_about_one_look_each() {
    let mut played = Played::new(tuning(MS * 200));
    played.at_rate(1_000_000, 2_000);
    let Choice {
        records,
        poll_interval,
        ..
    } = played.tuner.choice();
    let (chunks, polls) = (played.sizes.len() as u64, played.polls);
    assert!((16_384..=65_536).contains(&records), "{records}");
    // Except the first ones, when the bytes of a record were not known yet.
    let apart = played.sizes[10..]
        .iter()
        .map(|size| size.abs_diff(records))
        .max();
    assert!(apart.unwrap() <= records / 20, "{:?}", played.sizes);
    assert!(polls <= chunks * 5 / 4, "{polls} polls for {chunks} chunks");
    assert!(
        (MS * 10..MS * 50).contains(&poll_interval),
        "{poll_interval:?}"
    );
    assert!(played.longest < MS * 180);
}

#[test]
fn rate_that_jumps_a_thousandfold_is_followed_within_a_second_both_ways() {
    let bound = MS * 500;
    let mut played = Played::new(tuning(bound));
    for _ in 0..3 {
        played.at_rate(1_000, 3_000);
        let slow = played.tuner.choice();
        assert!((200..=300).contains(&slow.expected), "{slow:?}");
        assert_eq!(slow.poll_interval, slow.wait);
        played.at_rate(1_000_000, 1_000);
        let fast = played.tuner.choice();
        assert_eq!(fast.expected, fast.records);
        assert!(fast.poll_interval < MS * 50, "{fast:?}");
        // A wake-up came for records that it had not expected.
        assert!(played.most_queued <= WAKE);
    }
    played.at_rate(1_000, 1_000);
    assert_eq!(
        played.tuner.choice().poll_interval,
        played.tuner.choice().wait
    );
    played.at_rate(1_000, 500);
    let slow = played.tuner.choice();
    assert!(slow.expected < 400, "{slow:?}");
    assert!(played.longest <= bound);
}

#[test]
fn idle_collector_polls_twice_a_second_and_no_more() {
    let mut played = Played::new(tuning(Duration::from_secs(10)));
    played.at_rate(1_000_000, 100);
    played.pass_to(played.now + Duration::from_secs(5));
    let polls = played.polls;
    played.pass_to(played.now + Duration::from_secs(10));
    let polls = played.polls - polls;
    assert!((19..=21).contains(&polls), "{polls}");
}

#[test]
fn wait_time_that_was_set_is_the_longest_that_is_chosen() {
    let set = Tuning {
        max_wait: Some(MS * 30),
        ..tuning(MS * 160)
    };
    let mut tuner = Tuner::new(set, Instant::now());
    assert_eq!(tuner.choice().wait, MS * 30);
    tuner.polled(0, Instant::now());
    assert_eq!(tuner.choice().wait, MS * 30);
}

#[test]
fn records_that_are_large_have_smaller_chunks() {
    let mut tuner = Tuner::new(tuning(MS * 100), Instant::now());
    let usual = tuner.choice().records;
    for _ in 0..100 {
        tuner.encoded(1_000, 1_100_000, 1_000_000);
    }
    tuner.polled(0, Instant::now());
    let large = tuner.choice().records;
    assert!(large < usual, "{large} {usual}");
}

#[test]
fn small_queues_are_looked_into_before_they_wake() {
    let small = Tuning {
        queue_bytes: 64 << 10,
        ..tuning(MS * 500)
    };
    let mut played = Played::new(small);
    played.at_rate(10_000, 2_000);
    // 192 rows of 64 bytes are three sixteenths of 64 KiB.
    let poll_interval = played.tuner.choice().poll_interval;
    assert!(
        (MS * 18..=MS * 20).contains(&poll_interval),
        "{poll_interval:?}"
    );
}

proptest! {
    #[test]
    fn no_record_waits_longer_than_the_bound_whatever_comes(
        bound_ms in 1_u32..2_000,
        bursts in prop::collection::vec((0_u64..3_000_000_000, 0_u64..5_000_000, 1_usize..3_000), 1..40),
        chunk_bytes in 1_usize..1_000_000,
    ) {
        let bound = MS * bound_ms;
        let mut played = Played::new(Tuning { chunk_bytes, ..tuning(bound) });
        for (pause, every, records) in bursts {
            played.come([Duration::from_nanos(pause)]);
            played.come(std::iter::repeat_n(Duration::from_nanos(every), records));
            let Choice { records, wait, poll_interval, expected } = played.tuner.choice();
            prop_assert!((1..=65_536).contains(&records));
            prop_assert!((1..=records).contains(&expected));
            prop_assert!(poll_interval <= wait && wait == bound / 2);
        }
        played.pass_to(played.now + bound);
        prop_assert!(played.queued.is_empty() && played.batch.is_empty());
        prop_assert!(played.longest <= bound, "{:?} of {bound:?}", played.longest);
        let most = played.sizes.iter().max().copied().unwrap_or(0);
        prop_assert!(most <= 65_536);
    }

    #[test]
    fn what_is_confirmed_keeps_the_bound_where_the_medium_takes_less_than_half_of_it(
        bound_ms in 20_u32..1_000,
        medium_share in 0_u32..100,
        rates in prop::collection::vec(20_u32..10_000, 1..6),
    ) {
        let mut played = Played::new(tuning(MS * bound_ms));
        played.medium = MS * bound_ms * medium_share / 210;
        for rate in rates {
            played.at_rate(rate, 2_000);
        }
        prop_assert_eq!(played.broken, 0);
    }
}

const LOOK: Duration = Duration::from_millis(10);

fn after(rate: &mut Rate, at: &mut (u64, Instant), time: Duration, records: u64) -> f64 {
    *at = (at.0 + records, at.1 + time);
    rate.observe(at.0, at.1, LOOK / 2, 1_000);
    rate.per_second()
}

#[test]
fn rate_is_followed_by_half_with_each_look() {
    let mut at = (0, Instant::now());
    let mut rate = Rate::new(at.1);
    for _ in 0..20 {
        after(&mut rate, &mut at, LOOK, 1);
    }
    assert!((rate.per_second() - 100.0).abs() < 1e-3);
    let up = after(&mut rate, &mut at, LOOK, 10_000);
    assert!((up - 500_050.0).abs() < 1.0, "{up}");
    let down = after(&mut rate, &mut at, LOOK, 1);
    assert!((down - 250_075.0).abs() < 1.0, "{down}");
    // After a second of silence little of it is left.
    let silent = after(&mut rate, &mut at, Duration::from_secs(1), 0);
    assert!(silent < down / 20.0, "{silent}");
}

#[test]
fn few_records_in_a_short_time_say_nothing() {
    let mut at = (0, Instant::now());
    let mut rate = Rate::new(at.1);
    assert!(after(&mut rate, &mut at, Duration::from_micros(10), 3) < 1e-9);
    // They count together with later ones.
    let both = after(&mut rate, &mut at, Duration::from_micros(9_990), 7);
    assert!((both - 500.0).abs() < 1e-6, "{both}");
    let many = after(&mut rate, &mut at, Duration::from_millis(1), 1_000);
    assert!((many - 500_250.0).abs() < 1.0, "{many}");
}
