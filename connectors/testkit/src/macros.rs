//! One test for each case of the contract.

/// Makes one `#[test]` for each case of the contract, for a type that implements
/// [`Medium`](crate::Medium).
///
/// Use it in a module of its own: `mod contract { baler_connector_testkit::contract_tests!(Tcp); }`.
/// A case that the medium cannot support prints that it was skipped, and why.
/// What follows the type stands before each test:
/// `contract_tests!(Cluster, #[ignore = "needs a cluster"])`.
#[macro_export]
macro_rules! contract_tests {
    ($medium:ty $(, $attribute:tt $meta:tt)*) => {
        $crate::contract_tests! {
            @each $medium, [$($attribute $meta)*];
            writing: chunk_above_the_limit_is_handed_back,
            writing: every_ticket_is_confirmed_exactly_once,
            writing: full_window_hands_back_and_notifies_when_it_opens,
            writing: offer_before_reopen_is_broken,
            writing: owner_that_stops_waiting_is_told_of_room_and_of_all_when_it_waits_again,
            writing: window_counts_bytes,
            reading: capability_is_consistent,
            reading: chunk_at_the_limit_passes,
            reading: empty_medium_is_idle_or_ends,
            reading: everything_confirmed_is_readable,
            reading: many_writers_reach_one_reader,
            reading: order_is_kept_in_each_lane,
            reading: paused_reader_gets_nothing,
            reading: readers_share_the_chunks,
            failing: broken_connection_loses_nothing,
            failing: rejected_chunk_is_not_delivered_again,
            failing: retried_chunk_is_delivered_again,
            failing: stale_token_is_told,
            failing: unsettled_chunks_come_again_after_restart,
            failing: watermark_never_passes_an_unsettled_chunk,
            closing: close_accounts_for_what_a_stuck_peer_holds,
            closing: close_flushes_what_was_offered,
            closing: reader_closes_within_its_deadline,
            closing: unopened_writer_closes_at_once,
        }
    };
    (@each $medium:ty, $attributes:tt; $($group:ident: $case:ident,)*) => {
        $($crate::contract_tests! { @one $medium, $attributes, $group, $case })*
    };
    (@one $medium:ty, [$($attribute:tt)*], $group:ident, $case:ident) => {
        #[test]
        $($attribute)*
        fn $case() {
            $crate::$group::$case::<$medium>();
        }
    };
}
