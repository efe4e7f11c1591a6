use std::cell::Cell;

thread_local! {
    static CALLS: Cell<u32> = const { Cell::new(0) };
    static OPEN: Cell<u32> = const { Cell::new(0) };
    static DEEPEST: Cell<u32> = const { Cell::new(0) };
}

crate::monitored! {
    fn counted {
        CALLS.set(CALLS.get() + 1);
        OPEN.set(OPEN.get() + 1);
        DEEPEST.set(DEEPEST.get().max(OPEN.get()));
    } after {
        OPEN.set(OPEN.get() - 1);
    }
}

#[test]
fn calls_nest_to_the_depth_that_is_asked_for() {
    for depth in [1, 2, 128] {
        CALLS.set(0);
        DEEPEST.set(0);
        counted(depth);
        assert_eq!((CALLS.get(), DEEPEST.get(), OPEN.get()), (depth, depth, 0));
    }
}
