//! The outbox over a writer that follows a script.

mod fake;
mod schedules;

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::time::Duration;

use fake::{Fake, MediumAction, Nobody, chunk, start};
use proptest::prelude::*;

use super::*;
use crate::transport::{RetryClass, RetryPolicy};

/// Tickets by how they ended.
fn ends(fates: &[Fate]) -> Vec<(u64, &'static str)> {
    let name = |end: &End| match end {
        End::Confirmed => "confirmed",
        End::Spooled => "spooled",
        End::Refused(_) => "refused",
        End::TooLarge { .. } => "too large",
        End::Undelivered(_) => "undelivered",
    };
    fates
        .iter()
        .map(|fate| (fate.chunk.ticket, name(&fate.end)))
        .collect()
}

#[test]
fn window_is_filled_in_order_and_moves_with_confirmations() {
    let fake = Fake::new(2);
    let mut outbox = fake.outbox(RetryPolicy::default());
    let (now, mut fates) = (start(), Vec::new());
    for ticket in 0..4 {
        outbox.push(chunk(ticket, 10), now);
    }
    assert_eq!(outbox.drive(now, None, &mut fates), None);
    assert_eq!(fake.with(|script| script.in_flight.clone()), [0, 1]);
    let stats = outbox.stats();
    assert_eq!((stats.in_flight_chunks, stats.in_flight_bytes), (2, 20));
    assert_eq!((stats.unconfirmed_chunks, stats.unconfirmed_bytes), (4, 40));
    fake.perform(MediumAction::Confirm);
    outbox.drive(now, None, &mut fates);
    assert_eq!(ends(&fates), [(0, "confirmed")]);
    assert_eq!(fake.with(|script| script.in_flight.clone()), [1, 2]);
    assert_eq!(outbox.first_ticket(), Some(1));
    let stats = outbox.stats();
    assert_eq!((stats.in_flight_chunks, stats.in_flight_bytes), (2, 20));
}

#[test]
fn writer_may_sleep_while_the_owner_waits_for_nothing_and_nothing_waits() {
    let fake = Fake::new(2);
    let mut outbox = fake.outbox(RetryPolicy::default());
    let (now, mut fates) = (start(), Vec::new());
    let sleeps = || fake.with(|script| script.unawaited);
    outbox.push(chunk(0, 10), now);
    outbox.drive(now, None, &mut fates);
    assert!(!sleeps(), "an owner that says nothing waits");
    outbox.set_awaited(false);
    assert!(sleeps());
    // Nor while a chunk waits for room: the confirmation makes room.
    outbox.push(chunk(1, 10), now);
    outbox.drive(now, None, &mut fates);
    assert!(sleeps());
    outbox.push(chunk(2, 10), now);
    outbox.drive(now, None, &mut fates);
    assert!(!sleeps());
    fake.perform(MediumAction::Confirm);
    outbox.drive(now, None, &mut fates);
    assert!(sleeps());
    // Nor after a failure, until a chunk was confirmed.
    fake.perform(MediumAction::Break { arrived: false });
    let again = outbox.drive(now, None, &mut fates).unwrap();
    assert!(!sleeps());
    outbox.drive(again, None, &mut fates);
    assert!(!sleeps());
    fake.perform(MediumAction::Confirm);
    outbox.drive(again, None, &mut fates);
    assert!(sleeps());
    outbox.set_awaited(true);
    assert!(!sleeps());
}

#[test]
fn age_is_that_of_the_oldest_chunk_without_a_fate() {
    let fake = Fake::new(2);
    let mut outbox = fake.outbox(RetryPolicy::default());
    let first = start();
    let (second, later) = (
        first + Duration::from_secs(3),
        first + Duration::from_secs(10),
    );
    let age = |outbox: &Outbox| outbox.stats().oldest_unconfirmed_age(later);
    assert_eq!(age(&outbox), Duration::ZERO);
    outbox.push(chunk(0, 10), first);
    outbox.push(chunk(1, 10), second);
    let mut fates = Vec::new();
    outbox.drive(second, None, &mut fates);
    assert_eq!(age(&outbox), later - first);
    fake.perform(MediumAction::Confirm);
    outbox.drive(later, None, &mut fates);
    assert_eq!(age(&outbox), later - second);
}

#[test]
fn bytes_of_the_window_bound_all_but_a_single_chunk() {
    let mut fake = Fake::new(8);
    fake.capability.window_bytes = NonZeroUsize::new(100).unwrap();
    let mut outbox = fake.outbox(RetryPolicy::default());
    let (now, mut fates) = (start(), Vec::new());
    outbox.push(chunk(0, 500), now);
    outbox.push(chunk(1, 60), now);
    outbox.push(chunk(2, 60), now);
    outbox.drive(now, None, &mut fates);
    assert_eq!(fake.with(|script| script.in_flight.clone()), [0]);
    fake.perform(MediumAction::Confirm);
    outbox.drive(now, None, &mut fates);
    assert_eq!(fake.with(|script| script.in_flight.clone()), [1]);
}

#[test]
fn room_is_bounded_by_chunks_and_bytes_but_never_none_at_all() {
    let fake = Fake::new(8);
    let settings = OutboxSettings {
        max_chunks: 2,
        max_bytes: 100,
        ..OutboxSettings::default()
    };
    let make = || Outbox::new(Box::new(fake.clone()), settings.clone(), Arc::new(Nobody));
    let mut outbox = make();
    assert!(outbox.has_room());
    outbox.push(chunk(0, 10), start());
    assert!(outbox.has_room());
    outbox.push(chunk(1, 10), start());
    assert!(!outbox.has_room());
    let mut outbox = make();
    outbox.push(chunk(0, 100), start());
    assert!(!outbox.has_room());
}

#[test]
fn everything_unconfirmed_is_sent_again_in_order_after_a_break() {
    let fake = Fake::new(3);
    let mut outbox = fake.outbox(RetryPolicy::default());
    let (now, mut fates) = (start(), Vec::new());
    for ticket in 0..5 {
        outbox.push(chunk(ticket, 10), now);
    }
    outbox.drive(now, None, &mut fates);
    fake.perform(MediumAction::Confirm);
    fake.perform(MediumAction::Break { arrived: true });
    let again = outbox.drive(now, None, &mut fates).unwrap();
    assert!(again <= now + RetryPolicy::default().min_delay);
    assert_eq!(outbox.stats().connection, Connection::Closed);
    outbox.drive(again, None, &mut fates);
    assert_eq!(fake.with(|script| script.in_flight.clone()), [1, 2, 3]);
    let stats = outbox.stats();
    assert_eq!((stats.retries, stats.reopened, stats.broken), (2, 1, 1));
    assert_eq!(ends(&fates), [(0, "confirmed")]);
}

#[test]
fn nothing_new_is_offered_before_what_was_refused_for_now() {
    let fake = Fake::new(2);
    let mut outbox = fake.outbox(RetryPolicy::default());
    let (now, mut fates) = (start(), Vec::new());
    for ticket in 0..4 {
        outbox.push(chunk(ticket, 10), now);
    }
    outbox.drive(now, None, &mut fates);
    fake.perform(MediumAction::Refuse(RetryClass::Retry));
    let again = outbox.drive(now, None, &mut fates).unwrap();
    assert!(again > now);
    assert_eq!(fake.with(|script| script.in_flight.clone()), [1]);
    outbox.drive(again, None, &mut fates);
    assert_eq!(fake.with(|script| script.offered.clone()), [0, 1, 0]);
}

#[test]
fn refusals_end_by_their_class() {
    let fake = Fake::new(2);
    let mut outbox = fake.outbox(RetryPolicy::default());
    let (now, mut fates) = (start(), Vec::new());
    outbox.push(chunk(0, 10), now);
    outbox.push(chunk(1, 10), now);
    outbox.drive(now, None, &mut fates);
    fake.perform(MediumAction::Refuse(RetryClass::Final));
    fake.perform(MediumAction::Refuse(RetryClass::Exhausted));
    outbox.drive(now, None, &mut fates);
    assert_eq!(ends(&fates), [(0, "refused"), (1, "undelivered")]);
    assert!(outbox.is_empty());
}

#[test]
fn chunk_that_is_too_large_goes_back_and_does_not_stop_others() {
    let fake = Fake::new(2);
    fake.with(|script| script.max_chunk_bytes = 50);
    let mut outbox = fake.outbox(RetryPolicy::default());
    let (now, mut fates) = (start(), Vec::new());
    outbox.push(chunk(0, 51), now);
    outbox.push(chunk(1, 50), now);
    outbox.drive(now, None, &mut fates);
    let [fate] = fates.as_slice() else {
        panic!("{fates:?}")
    };
    assert_eq!(fate.chunk.bytes.len(), 51);
    assert!(matches!(
        fate.end,
        End::TooLarge {
            max_chunk_bytes: 50
        }
    ));
    assert_eq!(fake.with(|script| script.in_flight.clone()), [1]);
}

#[test]
fn opening_that_fails_for_good_refuses_all_there_is_and_will_be() {
    let fake = Fake::new(2);
    fake.with(|script| script.failed = Some(RetryClass::Final));
    let mut outbox = fake.outbox(RetryPolicy::default());
    let (now, mut fates) = (start(), Vec::new());
    outbox.push(chunk(0, 10), now);
    assert_eq!(outbox.drive(now, None, &mut fates), None);
    outbox.push(chunk(1, 10), now);
    outbox.drive(now, None, &mut fates);
    assert_eq!(ends(&fates), [(0, "refused"), (1, "refused")]);
    assert_eq!(outbox.stats().connection, Connection::Failed);
    assert_eq!(fake.with(|script| script.reopened), 1);
}

#[test]
fn chunk_is_given_up_after_so_many_failures() {
    let fake = Fake::new(2);
    fake.with(|script| script.closed_for = u32::MAX);
    let policy = RetryPolicy {
        max_attempts: Some(3),
        ..RetryPolicy::default()
    };
    let mut outbox = fake.outbox(policy);
    let (mut now, mut fates) = (start(), Vec::new());
    outbox.push(chunk(0, 10), now);
    while fates.is_empty() {
        let next = outbox.drive(now, None, &mut fates).unwrap();
        assert!(next >= now);
        now = next;
    }
    assert_eq!(ends(&fates), [(0, "undelivered")]);
    assert_eq!(fake.with(|script| script.reopened), 3);
}

#[test]
fn chunk_is_given_up_after_so_long_also_in_flight() {
    let fake = Fake::new(2);
    let policy = RetryPolicy {
        max_elapsed: Some(Duration::from_secs(1)),
        ..RetryPolicy::default()
    };
    let mut outbox = fake.outbox(policy);
    let (now, mut fates) = (start(), Vec::new());
    outbox.push(chunk(0, 10), now);
    let expiry = now + Duration::from_secs(1);
    assert_eq!(outbox.drive(now, None, &mut fates), Some(expiry));
    outbox.drive(expiry - Duration::from_nanos(1), None, &mut fates);
    assert!(fates.is_empty());
    outbox.drive(expiry, None, &mut fates);
    assert_eq!(ends(&fates), [(0, "undelivered")]);
    // No chunk has this late confirmation's ticket any more.
    fake.perform(MediumAction::Confirm);
    outbox.drive(expiry, None, &mut fates);
    assert_eq!(fates.len(), 1);
}

#[test]
fn pauses_grow_until_something_is_confirmed() {
    let fake = Fake::new(2);
    let policy = RetryPolicy::default();
    let mut outbox = fake.outbox(policy.clone());
    let (mut now, mut fates) = (start(), Vec::new());
    outbox.push(chunk(0, 10), now);
    let mut longest = Duration::ZERO;
    for _ in 0..20 {
        // It can be opened each time, and breaks before anything is confirmed.
        outbox.drive(now, None, &mut fates);
        fake.perform(MediumAction::Break { arrived: false });
        let next = outbox.drive(now, None, &mut fates).unwrap();
        longest = longest.max(next - now);
        now = next;
    }
    assert!(longest > policy.min_delay * 8, "{longest:?}");
    outbox.drive(now, None, &mut fates);
    fake.perform(MediumAction::Confirm);
    outbox.drive(now, None, &mut fates);
    fake.perform(MediumAction::Break { arrived: false });
    let next = outbox.drive(now, None, &mut fates).unwrap();
    assert!(next - now <= policy.min_delay);
}

#[test]
fn closing_accounts_for_every_chunk() {
    let fake = Fake::new(2);
    let mut outbox = fake.outbox(RetryPolicy::default());
    let (now, mut fates) = (start(), Vec::new());
    for ticket in 0..3 {
        outbox.push(chunk(ticket, 10), now);
    }
    outbox.drive(now, None, &mut fates);
    fake.perform(MediumAction::Confirm);
    assert!(outbox.close(now, &mut fates).is_none());
    let expected = [(0, "confirmed"), (1, "undelivered"), (2, "undelivered")];
    assert_eq!(ends(&fates), expected);
}

fn any_action() -> impl Strategy<Value = MediumAction> {
    let class = prop_oneof![
        Just(RetryClass::Exhausted),
        Just(RetryClass::Final),
        Just(RetryClass::Retry),
    ];
    prop_oneof![
        8 => Just(MediumAction::Confirm),
        1 => class.prop_map(MediumAction::Refuse),
        1 => Just(MediumAction::RefuseNewest),
        1 => any::<bool>().prop_map(|arrived| MediumAction::Break { arrived }),
        1 => (0..4_u32).prop_map(|attempts| MediumAction::BreakFor { attempts }),
        1 => Just(MediumAction::PanicOnOffer),
        2 => (0..400_u64).prop_map(|milliseconds| MediumAction::Wait { milliseconds }),
    ]
}

/// Pushes this number of chunks between the actions. Then lets the medium behave until all have
/// their fate or, if `close` is set, closes in the middle.
fn run(
    fake: &Fake,
    retry: RetryPolicy,
    chunks: u64,
    actions: &[MediumAction],
    close: bool,
) -> (Vec<Fate>, OutboxStats) {
    let mut outbox = fake.outbox(retry);
    let (mut now, mut fates) = (start(), Vec::new());
    let mut actions = actions.iter();
    let mut pushed = 0;
    loop {
        if pushed < chunks {
            outbox.push(chunk(pushed, 10), now);
            pushed += 1;
        }
        let wake_up = outbox.drive(now, None, &mut fates);
        let stats = outbox.stats();
        assert!(stats.in_flight_chunks <= fake.capability.window_chunks.get());
        assert_eq!(
            stats.unconfirmed_chunks + fates.len(),
            usize::try_from(pushed).unwrap()
        );
        assert_eq!(stats.unconfirmed_bytes, stats.unconfirmed_chunks * 10);
        let action = match actions.next() {
            Some(action) => *action,
            None if close => {
                outbox.close(now, &mut fates);
                return (fates, stats);
            }
            None if pushed == chunks && outbox.is_empty() => return (fates, stats),
            None => {
                // Either a wake-up will follow, or a chunk is in flight that will be confirmed.
                assert!(wake_up.is_some() || stats.in_flight_chunks > 0 || pushed < chunks);
                now = wake_up.map_or(now, |time| time.max(now));
                MediumAction::Confirm
            }
        };
        if let MediumAction::Wait { milliseconds } = action {
            now += Duration::from_millis(milliseconds);
        }
        fake.perform(action);
    }
}

proptest! {
    #[test]
    fn every_chunk_ends_with_exactly_one_fate(
        window in 1..5_usize,
        chunks in 0..40_u64,
        actions in prop::collection::vec(any_action(), 0..120),
        max_attempts in prop::option::of(1..5_u32),
        max_elapsed in prop::option::of((1..2_000_u64).prop_map(Duration::from_millis)),
        seed in any::<u64>(),
        close in any::<bool>(),
    ) {
        let fake = Fake::new(window);
        let retry = RetryPolicy { max_attempts, max_elapsed, seed, ..RetryPolicy::default() };
        let (fates, _) = run(&fake, retry, chunks, &actions, close);
        let mut seen = BTreeMap::new();
        for fate in &fates {
            *seen.entry(fate.chunk.ticket).or_insert(0) += 1;
        }
        if close {
            prop_assert!(seen.values().all(|times| *times == 1));
        } else {
            let all: BTreeMap<_, _> = (0..chunks).map(|ticket| (ticket, 1)).collect();
            prop_assert_eq!(seen, all);
        }
        let arrived = fake.with(|script| script.arrived.clone());
        for fate in &fates {
            if matches!(fate.end, End::Confirmed) {
                prop_assert!(arrived.contains(&fate.chunk.ticket));
            }
        }
    }

    #[test]
    fn breaks_at_any_point_lose_nothing_and_keep_the_order_of_first_arrivals(
        window in 1..5_usize,
        chunks in 0..40_u64,
        actions in prop::collection::vec(
            any_action().prop_filter("chunks are not refused one by one", |action| {
                !matches!(action, MediumAction::Refuse(_) | MediumAction::RefuseNewest)
            }),
            0..120,
        ),
        seed in any::<u64>(),
    ) {
        let fake = Fake::new(window);
        let retry = RetryPolicy { seed, ..RetryPolicy::default() };
        let (fates, stats) = run(&fake, retry, chunks, &actions, false);
        let confirmed: Vec<_> = (0..chunks).map(|ticket| (ticket, "confirmed")).collect();
        prop_assert_eq!(ends(&fates), confirmed);
        let arrived = fake.with(|script| script.arrived.clone());
        let mut first_arrivals = Vec::new();
        for ticket in arrived {
            if !first_arrivals.contains(&ticket) {
                first_arrivals.push(ticket);
            }
        }
        prop_assert_eq!(first_arrivals, (0..chunks).collect::<Vec<_>>());
        let offers = fake.with(|script| script.offered.len());
        let again = u64::try_from(offers).unwrap() - chunks;
        prop_assert_eq!(stats.retries, again);
    }
}

#[test]
fn chunk_that_a_full_writer_does_not_take_again_waits_for_its_notification() {
    let fake = Fake::new(4);
    let mut outbox = fake.outbox(RetryPolicy::default());
    let (now, mut fates) = (start(), Vec::new());
    outbox.push(chunk(0, 10), now);
    outbox.drive(now, None, &mut fates);
    fake.perform(MediumAction::Refuse(RetryClass::Retry));
    fake.with(|script| script.full = true);
    let again = outbox.drive(now, None, &mut fates).unwrap();
    assert!(again > now);
    // It is due, but there is no room: nothing can be done before the writer notifies.
    assert_eq!(outbox.drive(again, None, &mut fates), None);
    fake.with(|script| script.full = false);
    outbox.drive(again, None, &mut fates);
    assert_eq!(fake.with(|script| script.in_flight.clone()), [0]);
}

#[test]
fn a_wait_ends_with_a_chunk_that_moves_and_not_with_a_connection() {
    let fake = Fake::new(2);
    let mut outbox = fake.outbox(RetryPolicy::default());
    let (begin, mut fates) = (start(), Vec::new());
    let since = |outbox: &Outbox| outbox.stats().waiting.since();
    outbox.push(chunk(0, 10), begin);
    outbox.push(chunk(1, 10), begin);
    let mut now = begin;
    for _ in 0..20 {
        // The medium can be opened each time, and breaks before anything is confirmed.
        outbox.drive(now, None, &mut fates);
        fake.perform(MediumAction::Break { arrived: false });
        now = outbox.drive(now, None, &mut fates).unwrap();
        assert_eq!(since(&outbox), Some(begin));
        assert!(outbox.stats().waiting.error().is_some());
    }
    outbox.drive(now, None, &mut fates);
    fake.perform(MediumAction::Confirm);
    now += Duration::from_secs(1);
    outbox.drive(now, None, &mut fates);
    // The other one waits from here on, and no error has occurred since.
    assert_eq!(since(&outbox), Some(now));
    assert!(outbox.stats().waiting.error().is_none());
    fake.perform(MediumAction::Refuse(RetryClass::Retry));
    outbox.drive(now + Duration::from_secs(1), None, &mut fates);
    assert_eq!(since(&outbox), Some(now), "a refusal for now moves nothing");
    outbox.drive(now + Duration::from_secs(9), None, &mut fates);
    fake.perform(MediumAction::Confirm);
    outbox.drive(now + Duration::from_secs(9), None, &mut fates);
    assert_eq!(since(&outbox), None);
    assert_eq!(ends(&fates), [(0, "confirmed"), (1, "confirmed")]);
}

#[test]
fn chunks_that_the_policy_gives_up_do_not_end_a_wait() {
    let fake = Fake::new(2);
    fake.with(|script| script.closed_for = u32::MAX);
    let policy = RetryPolicy {
        max_attempts: Some(1),
        ..RetryPolicy::default()
    };
    let mut outbox = fake.outbox(policy);
    let (begin, mut fates) = (start(), Vec::new());
    let mut now = begin;
    for ticket in 0..5 {
        outbox.push(chunk(ticket, 10), now);
        now = outbox.drive(now, None, &mut fates).unwrap();
        assert_eq!(outbox.stats().waiting.since(), Some(begin));
    }
    assert!(fates.len() >= 4, "{fates:?}");
}

#[test]
fn without_chunks_a_connection_is_all_that_is_waited_for() {
    let fake = Fake::new(2);
    fake.with(|script| script.closed_for = 1);
    let mut outbox = fake.outbox(RetryPolicy::default());
    let (begin, mut fates) = (start(), Vec::new());
    let again = outbox.drive(begin, None, &mut fates).unwrap();
    assert_eq!(outbox.stats().waiting.since(), Some(begin));
    outbox.drive(again, None, &mut fates);
    assert_eq!(outbox.stats().waiting.since(), None);
}

#[test]
fn owner_that_does_not_wait_asks_for_fates_that_are_overdue() {
    let fake = Fake::new(2);
    let mut outbox = fake.outbox(RetryPolicy::default());
    let (begin, mut fates) = (start(), Vec::new());
    outbox.set_awaited(false);
    outbox.push(chunk(0, 10), begin);
    let look = outbox.drive(begin, None, &mut fates);
    assert_eq!(look, Some(begin + OVERDUE));
    assert!(fake.with(|script| script.unawaited));
    outbox.drive(begin + OVERDUE, None, &mut fates);
    assert!(!fake.with(|script| script.unawaited));
    fake.perform(MediumAction::Confirm);
    outbox.drive(begin + OVERDUE, None, &mut fates);
    assert!(fake.with(|script| script.unawaited));
}
