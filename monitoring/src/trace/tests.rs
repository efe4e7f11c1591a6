//! Tests of trace contexts, without probes.

use super::*;

/// As probes do.
fn enter() -> Position {
    let at = enter_fast().unwrap_or_else(enter_slow);
    Position {
        trace_id: id_here().cast_signed(),
        at,
    }
}

fn leave(call: Position) {
    super::leave(call.at);
}

#[test]
fn eoi_begins_anew_after_two_billion_calls() {
    let root = enter();
    HERE.with(|here| {
        let bits = trace_bits(TRACE_ID.get());
        here.next.set(at(u32::MAX >> 1, 1) | bits);
    });
    let last = enter();
    position(u32::MAX >> 1, 1, last);
    leave(last);
    let next = enter();
    position(0, 1, next);
    let inner = enter();
    position(1, 2, inner);
    leave(inner);
    leave(next);
    leave(root);
    assert_eq!(TraceContext::current().trace_id(), None);
}

fn position(eoi: u32, ess: u32, call: Position) {
    let indices = [eoi, ess].map(|index| i32::try_from(index).unwrap());
    assert_eq!(eoi_and_ess(call.at), indices);
}

#[test]
fn indices_count_entries_and_depth() {
    let root = enter();
    position(0, 0, root);
    let first = enter();
    position(1, 1, first);
    leave(first);
    let second = enter();
    position(2, 1, second);
    let inner = enter();
    position(3, 2, inner);
    leave(inner);
    leave(second);
    leave(root);
    let next = enter();
    position(0, 0, next);
    assert_eq!(next.trace_id, root.trace_id + 1);
    leave(next);
}

#[test]
fn sharing_a_trace_goes_on_counting() {
    let root = enter();
    let first = enter();
    leave(first);
    let context = TraceContext::current();
    assert_eq!(context.trace_id(), Some(root.trace_id));
    let elsewhere = std::thread::spawn(move || {
        let _attached = context.attach();
        let call = enter();
        leave(call);
        call
    });
    let elsewhere = elsewhere.join().unwrap();
    assert_eq!(elsewhere.trace_id, root.trace_id);
    position(2, 1, elsewhere);
    let last = enter();
    position(3, 1, last);
    leave(last);
    leave(root);
    assert_eq!(TraceContext::current().trace_id(), None);
}

#[test]
fn attached_contexts_are_restored() {
    let root = enter();
    let attached = TraceContext::none().attach();
    let other = enter();
    position(0, 0, other);
    assert_ne!(other.trace_id, root.trace_id);
    leave(other);
    drop(attached);
    let child = enter();
    position(1, 1, child);
    assert_eq!(child.trace_id, root.trace_id);
    leave(child);
    leave(root);
}

#[test]
fn forgotten_and_late_calls_do_not_shift_the_stack() {
    let root = enter();
    let forgotten = enter();
    let _ = enter();
    leave(root);
    let next = enter();
    position(0, 0, next);
    let child = enter();
    // It stood where the child stands, but in another trace.
    leave(forgotten);
    let grandchild = enter();
    position(2, 2, grandchild);
    leave(grandchild);
    leave(child);
    leave(next);
}

#[test]
fn trace_ids_are_unique_over_threads_and_not_negative() {
    let threads: Vec<_> = (0..4)
        .map(|_| std::thread::spawn(|| (0..1_000).map(|_| next_trace_id()).collect::<Vec<_>>()))
        .collect();
    let mut ids: Vec<_> = threads
        .into_iter()
        .flat_map(|thread| thread.join().unwrap())
        .collect();
    assert!(ids.iter().all(|id| *id >= 0));
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 4_000);
}

#[test]
fn trace_that_another_one_called_has_an_id_of_its_own_in_the_same_lane_group() {
    let callers = [next_trace_id(), 0, 7, i64::MAX, 0x23ce_929d_0e0e_4736];
    let called = callers.iter().flat_map(|caller| {
        let called = (0..100).map(|_| next_trace_id_beside(*caller));
        called.map(|id| (*caller, id))
    });
    let called: Vec<_> = called.collect();
    for (caller, id) in &called {
        assert!(*id >= 0);
        let group = |id: &i64| lane_group(id.cast_unsigned());
        assert_eq!(group(id), group(caller));
    }
    let mut ids: Vec<_> = called.iter().map(|(_, id)| *id).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 500);
    assert_eq!(lane_group(0x1234_0000_00ff_0001), 0x12ca);
}
