//! How the oracle judges.

use super::{EXAMPLES, Oracle};
use crate::commands::verify::findings::{Findings, Transport};
use crate::commands::verify::poison;

impl Oracle {
    /// Judges.
    pub(in crate::commands::verify) fn judge(&self, order_promised: bool) -> Findings {
        let mut findings = Findings {
            acknowledged: self.acknowledged,
            delivered: self.delivered,
            altered: self.altered,
            duplicates_within_reader: self.duplicates_within,
            duplicates_across_readers: self.duplicates_across,
            out_of_order: self.out_of_order,
            order_promised,
            spooled: self.spooled,
            transport: Transport {
                redelivered: self.redelivered,
                ..Transport::default()
            },
            conserved: true,
            violations: self.examples.clone(),
            ..Findings::default()
        };
        if order_promised {
            findings.violations.extend(self.disorder.iter().cloned());
        }
        for (stream, sets) in &self.streams {
            for (what, total, lacking, within) in [
                (
                    "missing",
                    &mut findings.missing,
                    &sets.acknowledged,
                    &sets.delivered,
                ),
                (
                    "spurious",
                    &mut findings.spurious,
                    &sets.delivered,
                    &sets.offered,
                ),
            ] {
                let records = lacking.missing_from(within);
                *total = total.saturating_add(records);
                if records > 0 && findings.violations.len() < EXAMPLES {
                    let first = lacking.first_missing_from(within, 3);
                    findings.violations.push(format!(
                        "{what}: {records} records of {stream:?}, the first are {first:?}"
                    ));
                }
            }
        }
        self.judge_accounts(&mut findings);
        self.judge_quarantine(&mut findings);
        for reader in self.readers.values() {
            let copies = reader.report.as_ref().map_or(0, |report| report.duplicates);
            let known = &mut findings.transport.duplicates;
            *known = known.saturating_add(copies);
        }
        if self.unreadable > 0 {
            findings.conserved = false;
            findings.violations.push(format!(
                "{} events that no process should tell",
                self.unreadable
            ));
        }
        findings
    }

    /// `offered = delivered + spooled + dropped`, for each life with a last word, as told and as
    /// seen from here.
    fn judge_accounts(&self, findings: &mut Findings) {
        for ((producer, life), account) in &self.producers {
            let Some(report) = &account.report else {
                findings.offered = findings.offered.saturating_add(account.offered);
                let unknown = account.offered.saturating_sub(account.acknowledged);
                findings.in_doubt = findings.in_doubt.saturating_add(unknown);
                continue;
            };
            findings.offered = findings.offered.saturating_add(report.emitted);
            let resent = &mut findings.transport.resent;
            *resent = resent.saturating_add(report.retries);
            let mut dropped = 0_u64;
            for (reason, records) in &report.dropped {
                dropped = dropped.saturating_add(*records);
                let total = findings.dropped.entry(reason.clone()).or_default();
                *total = total.saturating_add(*records);
            }
            let told = report.delivered.saturating_add(report.spooled);
            let adds_up = told.checked_add(dropped) == Some(report.emitted);
            if !adds_up || told != account.acknowledged || report.emitted != report.issued {
                findings.conserved = false;
                findings.violations.push(format!(
                    "not conserved: life {life} of producer {producer} issued {}, emitted {}, and \
                     says {} delivered, {} spooled, {dropped} dropped; {} were acknowledged",
                    report.issued,
                    report.emitted,
                    report.delivered,
                    report.spooled,
                    account.acknowledged,
                ));
            }
        }
    }

    fn judge_quarantine(&self, findings: &mut Findings) {
        findings.poisoned = u64::try_from(self.poisoned.len()).unwrap_or(u64::MAX);
        let mut wrong = 0_u64;
        for bytes in self.poisoned.keys() {
            wrong = wrong.saturating_add(u64::from(!self.quarantined.contains_key(bytes)));
        }
        for bytes in self.quarantined.keys() {
            let torn = self.torn.iter().any(|torn| contains(torn, bytes));
            // What was offered by a producer that was killed may have arrived without a word.
            let known = self.poisoned.contains_key(bytes) || poison::is_ours(bytes);
            if known {
                findings.quarantined = findings.quarantined.saturating_add(1);
            } else if !torn {
                wrong = wrong.saturating_add(1);
            }
        }
        findings.quarantine_errors = wrong;
        if wrong > 0 {
            findings.violations.push(format!(
                "quarantine: {wrong} chunks of foreign bytes were not put aside as they were, or \
                 sound ones were"
            ));
        }
    }
}

/// Whether bytes occur in others.
fn contains(whole: &[u8], part: &[u8]) -> bool {
    part.is_empty() || whole.windows(part.len()).any(|window| window == part)
}
