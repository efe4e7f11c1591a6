//! Random histories over the outbox's whole life, kills included: what a source may settle.

use std::collections::BTreeSet;

use super::fake::{Deed, Fake, chunk, start};
use super::*;

/// How many histories; a million by `BALER_SCHEDULES`, in a build that is optimised.
#[expect(
    clippy::disallowed_methods,
    reason = "a test is told how long it may take"
)]
fn cases() -> u32 {
    let many = std::env::var("BALER_SCHEDULES").ok();
    many.and_then(|text| text.parse().ok()).unwrap_or(1_000)
}

const CHUNKS: u64 = 12;

#[derive(Debug, Clone, Copy)]
enum Act {
    Push,
    Drive,
    Deed(Deed),
    /// The process is gone: a new outbox gets again what its source was not told of.
    Kill,
}

fn act() -> impl Strategy<Value = Act> {
    let deed = prop_oneof![
        6 => Just(Deed::Confirm),
        1 => Just(Deed::Refuse(RetryClass::Retry)),
        2 => Just(Deed::RefuseNewest),
        1 => any::<bool>().prop_map(|arrived| Deed::Break { arrived }),
        1 => (1_u32..3).prop_map(|attempts| Deed::BreakFor { attempts }),
    ];
    prop_oneof![
        4 => Just(Act::Push),
        6 => Just(Act::Drive),
        8 => deed.prop_map(Act::Deed),
        1 => Just(Act::Kill),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), ..ProptestConfig::default() })]

    #[test]
    fn no_schedule_lets_a_source_settle_what_has_not_arrived(
        acts in prop::collection::vec(act(), 10..80),
        window in 1_usize..6,
    ) {
        let fake = Fake::new(window);
        let mut now = start();
        // What the source has settled, because the outbox said that it is confirmed.
        let mut settled: BTreeSet<u64> = BTreeSet::new();
        let mut outbox = fake.outbox(RetryPolicy::default());
        let mut next = 0;
        let calm = [Act::Push, Act::Drive, Act::Deed(Deed::Confirm)];
        let calm = calm.into_iter().cycle().take(240);
        for act in acts.into_iter().chain(calm) {
            let mut fates = Vec::new();
            now += Duration::from_millis(400);
            match act {
                Act::Push if next < CHUNKS && outbox.has_room() => {
                    // Settled in an earlier life: the source does not deliver it again.
                    if !settled.contains(&next) {
                        outbox.push(chunk(next, 10), now);
                    }
                    next += 1;
                }
                Act::Push => {}
                Act::Drive => {
                    outbox.drive(now, None, &mut fates);
                }
                Act::Deed(deed) => fake.perform(deed),
                Act::Kill => {
                    fake.perform(Deed::Break { arrived: false });
                    outbox = fake.outbox(RetryPolicy::default());
                    next = 0;
                }
            }
            let arrived: BTreeSet<u64> = fake.with(|script| script.arrived.iter().copied().collect());
            for fate in fates {
                prop_assert!(matches!(fate.end, End::Confirmed), "{:?}", fate.end);
                prop_assert!(arrived.contains(&fate.chunk.ticket), "confirmed and not there");
                prop_assert!(settled.insert(fate.chunk.ticket), "a second fate");
            }
            // A source that settles along a watermark may go up to here.
            let watermark = outbox.first_ticket().unwrap_or(next);
            for below in 0..watermark.min(next) {
                prop_assert!(settled.contains(&below), "{} has no fate", below);
            }
        }
        prop_assert_eq!(settled.len(), usize::try_from(CHUNKS).unwrap(), "chunks are stuck");
    }
}
