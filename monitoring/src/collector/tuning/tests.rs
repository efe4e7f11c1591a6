//! The policy alone, and before a collector that is played.

use proptest::prelude::*;

use super::*;

const MS: Duration = Duration::from_millis(1);

fn tuning(max_latency: Duration) -> Tuning {
    Tuning {
        max_latency,
        max_wait: None,
        cost: ChunkCost::default(),
        chunk_bytes: 256 << 10,
        queue_bytes: 16 << 20,
    }
}

/// What a collector does with a tuner, by a clock that is moved.
struct Played {
    tuner: Tuner,
    now: Instant,
    /// When the rounds before began.
    looked: Instant,
    /// When the records were emitted that wait in the queues and in the batch.
    queued: Vec<Instant>,
    batch: Vec<Instant>,
    /// Since when the batch's oldest record may have waited.
    oldest: Option<Instant>,
    taken: u64,
    looks: u64,
    sizes: Vec<usize>,
    longest: Duration,
    most_queued: usize,
    /// How long the medium takes for a chunk.
    medium: Duration,
    /// When the chunk that is a sample is confirmed, and when it was due.
    sample: Option<(Instant, Instant)>,
    samples: u64,
    /// Of chunks whose first record was confirmed after the bound: when they were made.
    broken: Vec<Instant>,
}

/// So many unread records wake the collector.
const WAKE: usize = (4 << 20) / 64;

impl Played {
    fn new(tuning: Tuning) -> Self {
        let now = Instant::now();
        Self {
            tuner: Tuner::new(tuning, now),
            now,
            looked: now,
            queued: Vec::new(),
            batch: Vec::new(),
            oldest: None,
            taken: 0,
            looks: 0,
            sizes: Vec::new(),
            longest: Duration::ZERO,
            most_queued: 0,
            medium: Duration::ZERO,
            sample: None,
            samples: 0,
            broken: Vec::new(),
        }
    }

    fn close(&mut self) {
        let oldest = self.oldest.take();
        let records = self.batch.len();
        if records == 0 {
            return;
        }
        let first = self.batch.iter().min().map(|emitted| self.now - *emitted);
        self.batch.clear();
        let waited = first.unwrap_or_default();
        self.longest = self.longest.max(waited);
        if waited + self.medium > self.tuner.tuning.max_latency {
            self.broken.push(self.now);
        }
        self.tuner.encoded(records, records * 64, 200 + records * 6);
        self.sizes.push(records);
        let wait = self.tuner.choice().wait;
        let due = oldest.map_or(self.now, |oldest| self.now.min(oldest + wait));
        self.tuner.made(self.now - due, self.now);
        if self.sample.is_none() && self.tuner.begin_sample(self.now) {
            self.sample = Some((self.now + self.medium, due));
            self.samples += 1;
        }
    }

    fn look(&mut self) {
        self.looks += 1;
        self.most_queued = self.most_queued.max(self.queued.len());
        let began = self.looked;
        self.looked = self.now;
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
        if let Some((at, due)) = self.sample {
            if at <= self.now {
                self.sample = None;
                self.tuner.settled(self.now - due, self.now);
            }
        }
        self.tuner.looked(self.taken, self.now);
    }

    /// When the tick is over, the oldest record has to leave, or the sample's fate wakes.
    fn next_look(&self) -> Instant {
        let choice = self.tuner.choice();
        let tick = self.looked + choice.look;
        let due = self.oldest.map(|oldest| oldest + choice.wait);
        let told = self.sample.map(|(at, _)| at);
        [due, told].into_iter().flatten().fold(tick, Instant::min)
    }

    /// Lets records come, each so long after the one before.
    fn come(&mut self, after: impl IntoIterator<Item = Duration>) {
        for after in after {
            let at = self.now + after;
            self.pass_to(at);
            self.queued.push(at);
            if self.queued.len() >= WAKE {
                self.look();
            }
        }
    }

    fn pass_to(&mut self, at: Instant) {
        while self.next_look() <= at {
            self.now = self.next_look().max(self.now);
            self.look();
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
    let most = chunks + played.samples;
    assert!(played.looks <= most + 2, "{} {most}", played.looks);
    // A sixteenth of the bound is kept once the medium is known, and few samples are taken of it.
    assert_eq!(wait, MS * 100 * 15 / 16);
    assert!(played.samples <= 26, "{}", played.samples);
    assert!(played.sizes[8..].iter().all(|size| (9..=10).contains(size)));
    assert!((9..=10).contains(&played.tuner.choice().expected));
    assert_eq!(played.tuner.choice().look, wait);
}

#[test]
fn medium_that_becomes_slow_is_noticed_within_a_second() {
    let bound = MS * 200;
    let mut longest = Duration::ZERO;
    for more in 0..10 {
        let mut played = Played::new(tuning(bound));
        played.medium = MS;
        played.at_rate(1_000, 5_000 + more * 100);
        assert_eq!(played.tuner.choice().wait, bound * 15 / 16);
        assert_eq!(played.broken, []);
        played.medium = MS * 40;
        let since = played.now;
        played.at_rate(1_000, 10_000);
        let wait = played.tuner.choice().wait;
        assert!((MS * 140..MS * 145).contains(&wait), "{wait:?}");
        let broken = played.broken.iter().map(|at| *at - since);
        longest = longest.max(broken.max().unwrap());
        assert!(played.samples <= 42, "{}", played.samples);
        // As it is faster again, what was kept is given back.
        played.medium = MS;
        played.at_rate(1_000, 60_000);
        assert_eq!(played.tuner.choice().wait, bound * 15 / 16);
    }
    assert!((MS * 300..MS * 1_000).contains(&longest), "{longest:?}");
}

#[test]
fn largest_useful_size_closes_chunks_at_high_rates_with_about_one_look_each() {
    let mut played = Played::new(tuning(MS * 100));
    played.at_rate(1_000_000, 2_000);
    let Choice { records, look, .. } = played.tuner.choice();
    let (chunks, looks) = (played.sizes.len() as u64, played.looks);
    assert!((16_384..=65_536).contains(&records), "{records}");
    // The first ones, before it was known how many bytes a record has.
    let apart = played.sizes[10..]
        .iter()
        .map(|size| size.abs_diff(records))
        .max();
    assert!(apart.unwrap() <= records / 20, "{:?}", played.sizes);
    assert!(looks <= chunks * 5 / 4, "{looks} looks for {chunks} chunks");
    assert!((MS * 10..MS * 50).contains(&look), "{look:?}");
    assert!(played.longest < MS * 90);
}

#[test]
fn rate_that_jumps_a_thousandfold_is_followed_within_a_second_both_ways() {
    let bound = MS * 500;
    let mut played = Played::new(tuning(bound));
    for _ in 0..3 {
        played.at_rate(1_000, 3_000);
        let slow = played.tuner.choice();
        assert!((365..=470).contains(&slow.expected), "{slow:?}");
        assert_eq!(slow.look, slow.wait);
        played.at_rate(1_000_000, 1_000);
        let fast = played.tuner.choice();
        assert_eq!(fast.expected, fast.records);
        assert!(fast.look < MS * 50, "{fast:?}");
        // What it had not expected it was woken for.
        assert!(played.most_queued <= WAKE);
    }
    played.at_rate(1_000, 1_000);
    assert_eq!(played.tuner.choice().look, played.tuner.choice().wait);
    played.at_rate(1_000, 500);
    let slow = played.tuner.choice();
    assert!(slow.expected < 600, "{slow:?}");
    assert!(played.longest <= bound);
}

#[test]
fn idle_collector_looks_twice_a_second_and_no_more() {
    let mut played = Played::new(tuning(Duration::from_secs(10)));
    played.at_rate(1_000_000, 100);
    played.pass_to(played.now + Duration::from_secs(5));
    let looks = played.looks;
    played.pass_to(played.now + Duration::from_secs(10));
    let looks = played.looks - looks;
    assert!((19..=21).contains(&looks), "{looks}");
}

#[test]
fn what_a_medium_takes_for_itself_is_kept_from_the_wait_time() {
    let mut tuner = Tuner::new(tuning(MS * 160), Instant::now());
    assert_eq!(tuner.choice().wait, MS * 120);
    tuner.settled(MS * 40, Instant::now());
    assert!(tuner.looked(0, Instant::now()));
    assert_eq!(tuner.choice().wait, MS * 100);
}

#[test]
fn wait_time_that_was_set_is_the_longest_that_is_chosen() {
    let set = Tuning {
        max_wait: Some(MS * 30),
        ..tuning(MS * 160)
    };
    let mut tuner = Tuner::new(set, Instant::now());
    assert_eq!(tuner.choice().wait, MS * 30);
    tuner.settled(MS * 160, Instant::now());
    tuner.looked(0, Instant::now());
    assert_eq!(tuner.choice().wait, MS * 30);
}

#[test]
fn records_that_are_large_or_dear_have_smaller_chunks() {
    let mut tuner = Tuner::new(tuning(MS * 100), Instant::now());
    let usual = tuner.choice().records;
    for _ in 0..100 {
        tuner.encoded(1_000, 1_100_000, 1_000_000);
    }
    tuner.looked(0, Instant::now());
    let large = tuner.choice().records;
    assert!(large < usual, "{large} {usual}");
    let dear = Tuning {
        cost: ChunkCost {
            seconds_per_record: 1e-6,
            ..ChunkCost::default()
        },
        ..tuning(MS * 100)
    };
    assert!(Tuner::new(dear, Instant::now()).choice().records < usual / 4);
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
    let look = played.tuner.choice().look;
    assert!((MS * 18..=MS * 20).contains(&look), "{look:?}");
}

proptest! {
    #[test]
    fn no_record_waits_longer_than_the_bound_whatever_comes(
        bound_ms in 1_u32..2_000,
        bursts in prop::collection::vec((0_u64..3_000_000_000, 0_u64..5_000_000, 1_usize..3_000), 1..40),
        chunk_bytes in 1_usize..1_000_000,
        lates_ms in prop::collection::vec(0_u32..5_000, 0..10),
    ) {
        let bound = MS * bound_ms;
        let mut played = Played::new(Tuning { chunk_bytes, ..tuning(bound) });
        let mut lates = lates_ms.into_iter();
        for (pause, every, records) in bursts {
            played.come([Duration::from_nanos(pause)]);
            played.come(std::iter::repeat_n(Duration::from_nanos(every), records));
            if let Some(late) = lates.next() {
                played.tuner.settled(MS * late, played.now);
            }
            let Choice { records, wait, look, expected } = played.tuner.choice();
            prop_assert!((1..=65_536).contains(&records));
            prop_assert!((1..=records).contains(&expected));
            prop_assert!(look <= wait && wait <= bound * 15 / 16 + MS / 1_000 && wait >= bound / 2);
        }
        played.pass_to(played.now + bound);
        prop_assert!(played.queued.is_empty() && played.batch.is_empty());
        prop_assert!(played.longest <= bound, "{:?} of {bound:?}", played.longest);
        let most = played.sizes.iter().max().copied().unwrap_or(0);
        prop_assert!(most <= 65_536);
    }

    #[test]
    fn what_is_confirmed_keeps_the_bound_once_it_is_known_how_long_that_takes(
        bound_ms in 20_u32..1_000,
        medium_share in 0_u32..100,
        rates in prop::collection::vec(20_u32..10_000, 1..6),
    ) {
        let bound = MS * bound_ms;
        let mut played = Played::new(tuning(bound));
        played.medium = bound * medium_share / 300;
        // One chunk and its fate.
        played.at_rate(100, 3 * bound_ms);
        let known = played.now;
        for rate in rates {
            played.at_rate(rate, 2_000);
        }
        let broken = played.broken.iter().find(|at| **at >= known);
        prop_assert!(broken.is_none(), "{:?} after", broken.map(|at| *at - known));
        let reserve = (played.medium * 5 / 4).max(bound / 16);
        let wait = played.tuner.choice().wait;
        prop_assert!(wait + reserve <= bound + MS / 1_000, "{wait:?} {reserve:?} {bound:?}");
    }
}
