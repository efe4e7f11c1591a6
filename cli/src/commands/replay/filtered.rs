//! A replay of some records, or of some fields.
//!
//! Its chunks are new ones: they have an identity of this run. Under the old identity a consumer
//! that settled the original chunk would drop the new one as a copy of it, and the positions that
//! identify records would move.

use baler_analysis::Source;
use serde_json::Value;

use crate::args::ReplayArgs;
use crate::commands::send::{Forwarding, figures};
use crate::condition::{Condition, Failures};
use crate::endpoint::Writer;
use crate::exit::{Code, Failure};
use crate::fields::Fields;
use crate::observe::Observation;
use crate::output::{self, Progress};
use crate::shipping::Shipper;
use crate::shutdown::Shutdown;

/// The source of a replay, and what passes.
pub(super) struct Filtered {
    /// It hands out what decodes.
    pub(super) source: Source,
    /// Its name.
    pub(super) from: String,
    pub(super) condition: Option<Condition>,
    pub(super) fields: Option<Fields>,
}

impl Filtered {
    /// Sends the records that pass until the end of the source, the idle timeout or a signal.
    /// Returns the figures of both ends, and how it ended.
    ///
    /// # Errors
    ///
    /// The flags of chunks do not go together.
    pub(super) fn send(
        self,
        args: &ReplayArgs,
        target: Writer,
        context: (&Shutdown, &Observation, bool),
    ) -> Result<(Value, Result<Code, Failure>), Failure> {
        let (_, _, quiet) = context;
        let progress = Progress::spinner(quiet);
        // No metadata record of this program's own.
        let shipper = Shipper::start(&args.shipping, target, false, context)?;
        let failures = self.condition.as_ref().map(Condition::failures);
        let forwarding = Forwarding {
            source: self.source,
            endpoint: &self.from,
            condition: self.condition,
            fields: self.fields.as_ref(),
            shipper: &shipper,
            idle_timeout: Some(args.idle_timeout),
            give_up: Some(args.shipping.give_up),
        };
        let (report, forwarded) = forwarding.run(context, &progress);
        progress.clear();
        let mut source = figures(&self.from, &report);
        let filtered = failures.as_ref().map_or(0, Failures::filtered);
        output::insert(&mut source, "filtered", filtered);
        if let (Some(failures), false) = (&failures, quiet) {
            failures.tell();
        }
        let sent = shipper.finish();
        let mut document = sent.document().clone();
        output::insert(&mut document, "source", source);
        // A medium that was given up explains why the source stopped, not the other way round.
        let ended = sent.conclude().and_then(|code| {
            forwarded?;
            self.fields.as_ref().map_or(Ok(()), Fields::check)?;
            Ok(match code {
                Code::Done if report.given_back > 0 => Code::Incomplete,
                code => code,
            })
        });
        Ok((document, ended))
    }
}
