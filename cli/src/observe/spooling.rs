//! The figures of a spool that those of the writer around it do not have: the medium behind it.

use std::time::Instant;

use baler_spool::{SpoolRoute, SpoolWatch};

use super::exposition::Exposition;
use super::health::{Check, Limits};
use super::metric;
use super::observed::Observable;

const ROUTES: [SpoolRoute; 4] = [
    SpoolRoute::Away,
    SpoolRoute::Closed,
    SpoolRoute::Direct,
    SpoolRoute::Replaying,
];

impl Observable for SpoolWatch {
    fn expose(&self, exposition: &mut Exposition, _now: Instant) {
        let status = self.status();
        for route in ROUTES {
            exposition.set(&metric::SPOOL_ROUTE, &[route.name()], status.route == route);
        }
        exposition.set(&metric::SPOOL_REFUSED_CHUNKS, &[], status.refused_chunks);
        exposition.set(&metric::SPOOL_LOST_CHUNKS, &[], status.lost_chunks);
        exposition.set(&metric::SPOOL_DISK_FAILURES, &[], status.disk_failures);
    }

    /// Ready while the medium is away, since chunks are safe on disk, as long as the disk takes them.
    fn checks(&self, _limits: Limits, _now: Instant) -> Vec<Check> {
        let status = self.status();
        let away = status.route == SpoolRoute::Away;
        let mut check = Check::new("spool", !away || status.disk_error.is_none())
            .degraded(away)
            .with("route", status.route.name())
            .with("waiting_chunks", status.stats.waiting_chunks)
            .with("waiting_bytes", status.stats.waiting_bytes);
        if let Some(error) = &status.disk_error {
            check = check.with("disk_error", error.to_string());
        }
        vec![check]
    }
}
