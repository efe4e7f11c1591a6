//! A medium under test, a test for each case of the contract, and functions that wait for a
//! condition.

use std::time::{Duration, Instant};

use baler_common::transport::{ChunkReader, ChunkWriter};

/// A medium under test.
///
/// Each case creates one with [`TestMedium::fresh`]. It must not share chunks with the media of
/// other cases. Choose small limits (chunks of some kilobytes, a window of 8 to 64 chunks), so that
/// the cases that reach them are quick.
pub trait TestMedium: Sized {
    /// Creates a new, empty medium without connections.
    fn fresh() -> Self;

    /// Whether written chunks can be read.
    fn is_readable(&self) -> bool {
        true
    }

    /// Returns a writer that was not opened yet.
    fn writer(&mut self) -> Box<dyn ChunkWriter>;

    /// Returns a reader. After an earlier reader was closed, this is the restarted receiver.
    fn reader(&mut self) -> Box<dyn ChunkReader>;

    /// Breaks the connection of every writer, as a cut cable would. Chunks in flight may be lost or
    /// not; `reopen` succeeds afterwards. The group `breaks` needs it.
    fn break_connections(&mut self) {}

    /// Makes the peer hang: nothing is confirmed from now on, and nothing breaks. The group
    /// `stalls` needs it.
    fn stall(&mut self) {}

    /// Ends [`TestMedium::stall`].
    fn resume(&mut self) {}
}

/// Makes one `#[test]` for each case of the contract, for a type that implements
/// [`TestMedium`](crate::TestMedium): the cases that every writer must pass, and the cases of the
/// groups after the type.
///
/// Use it in a module of its own:
/// `mod contract { baler_connector_testkit::contract_tests!(Tcp: reads redelivers); }`.
/// Attributes of each test stand at the end:
/// `contract_tests!(Cluster: reads, #[ignore = "needs a cluster"])`.
///
/// | group | the medium |
/// |---|---|
/// | `reads` | has a reader |
/// | `redelivers` | delivers again after a retry and to a restarted receiver |
/// | `breaks` | has connections that [`break_connections`](crate::TestMedium::break_connections) breaks |
/// | `stalls` | can [`stall`](crate::TestMedium::stall), so that the window fills |
/// | `threads` | is written by a thread of Rust's, which notifies the owner |
/// | `many_writers`, `many_readers` | takes four of them at a time |
#[macro_export]
macro_rules! contract_tests {
    ($medium:ty: $($group:ident)* $(, $attribute:tt $meta:tt)*) => {
        $crate::contract_tests! { @groups $medium, [$($attribute $meta)*]; writes $($group)* }
    };
    (@groups $medium:ty, $attributes:tt; $($group:ident)*) => {
        $($crate::contract_tests! { @$group $medium, $attributes })*
    };
    (@writes $medium:ty, $attributes:tt) => {
        $crate::contract_tests! {
            @each $medium, $attributes;
            writing: chunk_above_the_limit_is_handed_back,
            writing: every_ticket_is_confirmed_exactly_once,
            writing: offer_before_reopen_is_broken,
            writing: owner_that_stops_waiting_is_told_of_room_and_of_all_when_it_waits_again,
            reading: capability_is_consistent,
            reading: empty_medium_is_idle_or_ends,
            closing: close_flushes_what_was_offered,
            closing: unopened_writer_closes_at_once,
        }
    };
    (@reads $medium:ty, $attributes:tt) => {
        $crate::contract_tests! {
            @each $medium, $attributes;
            reading: chunk_at_the_limit_passes,
            reading: everything_confirmed_is_readable,
            reading: order_is_kept_in_each_lane,
            reading: paused_reader_gets_nothing,
            failing: rejected_chunk_is_not_delivered_again,
            failing: stale_token_is_told,
            closing: reader_closes_within_its_deadline,
        }
    };
    (@redelivers $medium:ty, $attributes:tt) => {
        $crate::contract_tests! {
            @each $medium, $attributes;
            failing: retried_chunk_is_delivered_again,
            failing: unsettled_chunks_come_again_after_restart,
            failing: watermark_never_passes_an_unsettled_chunk,
        }
    };
    (@breaks $medium:ty, $attributes:tt) => {
        $crate::contract_tests! {
            @each $medium, $attributes;
            failing: broken_connection_loses_nothing,
        }
    };
    (@stalls $medium:ty, $attributes:tt) => {
        $crate::contract_tests! {
            @each $medium, $attributes;
            writing: full_window_hands_back_and_notifies_when_it_opens,
            writing: window_counts_bytes,
            closing: close_accounts_for_what_a_stuck_peer_holds,
        }
    };
    (@threads $medium:ty, $attributes:tt) => {
        $crate::contract_tests! {
            @each $medium, $attributes;
            failing: panic_of_the_thread_breaks_the_writer,
        }
    };
    (@many_writers $medium:ty, $attributes:tt) => {
        $crate::contract_tests! {
            @each $medium, $attributes;
            reading: many_writers_reach_one_reader,
        }
    };
    (@many_readers $medium:ty, $attributes:tt) => {
        $crate::contract_tests! {
            @each $medium, $attributes;
            reading: readers_share_the_chunks,
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

/// The longest wait of a test. Ample: only a failing test waits so long. A group of librdkafka's
/// mock cluster often needs 16 s to assign its partitions, and sometimes over 30 s.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Calls `step` until it returns a value, for [`PATIENCE`] at most.
///
/// # Panics
///
/// `step` returned no value in time; the message names `what`.
pub fn within_patience<T>(what: &str, step: impl FnMut() -> Option<T>) -> T {
    within(PATIENCE, what, step)
}

/// Calls `step` until it returns a value, for `time` at most.
///
/// # Panics
///
/// `step` returned no value in time; the message names `what`.
pub fn within<T>(time: Duration, what: &str, mut step: impl FnMut() -> Option<T>) -> T {
    let by = Instant::now() + time;
    loop {
        if let Some(value) = step() {
            return value;
        }
        assert!(Instant::now() < by, "not within {time:?}: {what}");
        pause();
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a pause between two looks at a condition, not a synchronisation"
)]
fn pause() {
    std::thread::sleep(Duration::from_millis(1));
}
