//! Both ends of a call: what is known at its beginning, and the record made of it at its end.

use std::sync::LazyLock;

use baler_common::record::kieker::controlflow::OperationExecutionRecord;
use baler_common::record::{Interned, Record};

use super::site::Site;
use crate::trace::Position;
use crate::{controller, queue};

/// Kieker's session id where there is none (`OperationExecutionRecord.NO_SESSION_ID`).
static NO_SESSION_ID: LazyLock<Interned> = LazyLock::new(|| Interned::new("<no-session-id>"));

/// What is known of a call when it begins.
#[derive(Debug, Clone, Copy)]
pub(super) struct Begun {
    site: &'static Site,
    position: Position,
    tin: i64,
}

impl Begun {
    pub(super) fn position(&self) -> Position {
        self.position
    }
}

/// Begins a call, in the trace that `enter` says; `None` if the controller has gone meanwhile.
pub(super) fn begin<T>(
    site: &'static Site,
    enter: impl FnOnce() -> (Position, T),
) -> Option<(Begun, T)> {
    controller::with_shared(|shared| {
        let (position, context) = enter();
        let begun = Begun {
            site,
            position,
            // Last, so that the call's time does not hold the probe's.
            tin: shared.clock.unix_ns(),
        };
        (begun, context)
    })
}

/// Ends a call and hands its record to the queue, unless monitoring was disabled meanwhile.
pub(super) fn end(begun: &Begun) {
    if !controller::is_active() {
        return;
    }
    controller::with_shared(|shared| {
        // A clock that was set back meanwhile must not give a negative duration.
        let tout = shared.clock.unix_ns().max(begun.tin);
        if !shared.is_enabled() {
            return;
        }
        let schema = OperationExecutionRecord::schema();
        queue::push(&shared.queues, schema, tout, |row| {
            row.interned(begun.site.signature());
            row.interned(*NO_SESSION_ID);
            row.i64(begun.position.trace_id);
            row.i64(begun.tin);
            row.i64(tout);
            row.interned(shared.hostname);
            row.i32(begun.position.eoi);
            row.i32(begun.position.ess);
        });
    });
}
